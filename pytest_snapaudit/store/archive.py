"""The data file: an ``.npz`` of four fixed members, the same bytes for the same arrays, never pickled.

Reading trusts nothing: the member names, the sizes in the zip directory and the ``.npy`` headers must agree
with the manifest *before* anything is decompressed or allocated, so neither a decompression bomb nor a header
with an absurd shape costs more memory than the manifest states, and that is at most :data:`MAX_BYTES`.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.store.failures import DamagedEntry

MEMBERS = ("reference_rows", "reference_counts", "canary_rows", "canary_counts")
MAX_BYTES = 2**30
ACCEPTED_DTYPES = "bool, integers, float16/32/64, complex64/128 or unicode strings"

_MAX_HEADER = 4096
_MAX_DIMENSIONS = 32
_MAX_CODE_POINT = 0x10FFFF
_ENCRYPTED = 0x1
_DTYPE = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<c8|<c16|<U[1-9][0-9]{0,5}", re.ASCII)
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class ArraySpec:
    """What the manifest states about one array.

    Attributes:
        dtype: NumPy type string, little-endian, for example ``"<f8"``.
        shape: the array's shape.
        sha256: of the array's bytes, C order, in hexadecimal.
    """

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    def __post_init__(self) -> None:
        if not _DTYPE.fullmatch(self.dtype):
            msg = f"states dtype {self.dtype!r}; accepted are {ACCEPTED_DTYPES}"
            raise DamagedEntry(msg)
        if len(self.shape) > _MAX_DIMENSIONS or any(length < 0 for length in self.shape):
            msg = f"states the shape {self.shape}, which no array has"
            raise DamagedEntry(msg)

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes, exact however absurd the shape."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def portable(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Return ``array`` C-contiguous and little-endian.

    Raises:
        TypeError: if its dtype is not one a snapshot may hold.
    """
    portable_dtype = array.dtype.newbyteorder("<")
    if array.dtype.kind == "U" and array.dtype.itemsize == 0:
        portable_dtype = np.dtype("<U1")
    if not _DTYPE.fullmatch(portable_dtype.str):
        msg = f"{what} must be an array of {ACCEPTED_DTYPES}, got dtype {array.dtype}."
        raise TypeError(msg)
    return np.ascontiguousarray(array, dtype=portable_dtype).reshape(array.shape)


def describe(array: NDArray[Any]) -> ArraySpec:
    """The specification of a :func:`portable` array."""
    return ArraySpec(array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest())


def encode(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of an ``.npz`` with the :func:`portable` ``arrays``, with fixed order, dates and attributes.

    Raises:
        ValueError: if the arrays together exceed :data:`MAX_BYTES`.
    """
    total = sum(arrays[name].nbytes for name in MEMBERS)
    if total > MAX_BYTES:
        msg = (
            f"the snapshot holds {total:,} bytes, more than the {MAX_BYTES:,} a store accepts; "
            "record fewer evaluations, smaller rows or a smaller dtype."
        )
        raise ValueError(msg)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in MEMBERS:
            member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            member.external_attr = 0o644 << 16
            content = io.BytesIO()
            np.lib.format.write_array(content, arrays[name], version=(1, 0), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return buffer.getvalue()


def decode(data: bytes, specs: Mapping[str, ArraySpec]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz``, in native byte order, if they are exactly what ``specs`` states.

    Raises:
        DamagedEntry: if they are not, in any way.
    """
    try:
        return _decode(data, specs)
    except DamagedEntry:
        raise
    # zipfile, zlib and NumPy raise about ten unrelated types on hostile bytes; all mean one thing here.
    except Exception as error:
        msg = f"is not a readable .npz archive ({type(error).__name__}: {error})"
        raise DamagedEntry(msg) from error


def _decode(data: bytes, specs: Mapping[str, ArraySpec]) -> dict[str, NDArray[Any]]:
    total = sum(specs[name].nbytes for name in MEMBERS)
    if total > MAX_BYTES:
        msg = f"would unpack to {total:,} bytes, more than the {MAX_BYTES:,} accepted"
        raise DamagedEntry(msg)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        names = sorted(member.filename for member in members)
        if names != sorted(f"{name}.npy" for name in MEMBERS):
            msg = f"holds the members {names}; exactly {[f'{name}.npy' for name in MEMBERS]} are accepted"
            raise DamagedEntry(msg)
        for member in members:
            _check_member(member, specs[member.filename.removesuffix(".npy")])
        return {name: _array(name, archive, specs[name]) for name in MEMBERS}


def _check_member(member: zipfile.ZipInfo, spec: ArraySpec) -> None:
    if member.flag_bits & _ENCRYPTED or member.compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
    ):
        msg = f"holds {member.filename} encrypted, or compressed by other means than deflate"
        raise DamagedEntry(msg)
    if not 0 < member.file_size - spec.nbytes <= _MAX_HEADER:
        msg = (
            f"holds {member.filename} of {member.file_size:,} bytes; "
            f"the manifest states {spec.nbytes:,} and a header"
        )
        raise DamagedEntry(msg)


def _array(name: str, archive: zipfile.ZipFile, spec: ArraySpec) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        content = file.read(spec.nbytes + _MAX_HEADER)
        rest = file.read(1)
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        msg = f"holds {name} in version {version} of the .npy format; only (1, 0) is accepted"
        raise DamagedEntry(msg)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_MAX_HEADER)
    if dtype.hasobject:
        msg = f"holds {name} as an object array; object arrays are pickles and are never read"
        raise DamagedEntry(msg)
    if (dtype.str, shape, fortran) != (spec.dtype, spec.shape, False):
        msg = (
            f"holds {name} with dtype {dtype.str} and shape {shape}; "
            f"the manifest states {spec.dtype} and {spec.shape}"
        )
        raise DamagedEntry(msg)
    if rest or len(content) - stream.tell() != spec.nbytes:
        msg = f"holds {len(content) - stream.tell():,} bytes of {name}; the manifest states {spec.nbytes:,}"
        raise DamagedEntry(msg)
    array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    if hashlib.sha256(array.tobytes()).hexdigest() != spec.sha256:
        msg = f"holds {name} with other bytes than recorded (SHA-256 differs)"
        raise DamagedEntry(msg)
    _check_values(name, array)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_values(name: str, array: NDArray[Any]) -> None:
    flat = array.reshape(-1)
    if array.dtype.kind == "U" and (flat.view("<u4") > _MAX_CODE_POINT).any():
        msg = f"holds {name} with code points outside Unicode"
        raise DamagedEntry(msg)
    if array.dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
        msg = f"holds {name} with booleans that are neither 0 nor 1"
        raise DamagedEntry(msg)
