"""DP-SGD on a linear model with two inputs, and neighbouring batches that differ by one record."""

import copy
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

DELTA = 1e-5
SIGMA, BOUND = 1.0, 0.5  # noise multiplier and clipping bound

torch.set_num_threads(1)
MODEL = torch.nn.Linear(2, 1)
with torch.no_grad():
    MODEL.weight.copy_(torch.tensor([[0.5, -0.5]]))
    MODEL.bias.zero_()


def record(x, y):
    return torch.tensor(x), torch.tensor([y])


def batch_of(records):
    return tuple(map(torch.stack, zip(*records, strict=True)))


PEOPLE = [record((1.0, 0.0), 0.5), record((0.0, 1.0), -0.5), record((1.0, 1.0), 0.0), record((0.5, 0.0), 0.2)]
OUTLIER = record((9.0, 9.0), 90.0)  # far from the line: its gradient is clipped
ONE_MORE = (PEOPLE, [*PEOPLE, OUTLIER])
BATCHES = tuple(map(batch_of, ONE_MORE))

ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.05,
}


class SquaredError(torch.nn.MSELoss):
    """One loss per record, also without reduction, as ghost clipping asks for it."""

    def forward(self, predicted, wanted):
        per_record = (predicted - wanted).square().reshape(-1)
        return per_record.mean() if self.reduction == "mean" else per_record


def private(records, *, batch_size=3, engine=None, with_epsilon=None, **settings):
    """``make_private`` on a copy of the model: an optimizer, ``backward`` and a Poisson-sampling loader."""
    model = copy.deepcopy(MODEL)
    defaults = {"max_grad_norm": BOUND, "criterion": SquaredError()}
    if with_epsilon is None:
        defaults["noise_multiplier"] = SIGMA
    parts = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": DataLoader(TensorDataset(*batch_of(records)), batch_size=batch_size),
        **defaults,
        **(with_epsilon or {}),
        **settings,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # secure_mode is off: these are tests
        engine = engine or PrivacyEngine()
        prepared = (engine.make_private if with_epsilon is None else engine.make_private_with_epsilon)(
            **parts
        )
    model, optimizer, *criterion, loader = prepared
    loss = criterion[0] if criterion else parts["criterion"]

    def backward(batch):
        inputs, wanted = batch
        loss(model(inputs), wanted).backward()

    return optimizer, backward, loader
