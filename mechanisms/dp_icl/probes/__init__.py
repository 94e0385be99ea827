"""What an auditor puts into a context and asks of it: canaries, membership queries, signal sentences."""

from dp_icl.probes.canaries import (
    FORMATS,
    IdentifierFormat,
    crafted_canaries,
    format_of,
    fresh_identifiers,
    rank_p_value,
    sampled_canaries,
)
from dp_icl.probes.membership import STATISTICS, MembershipAUC, clean_statistic, membership_auc
from dp_icl.probes.queries import (
    DEFENCES,
    QUERIES,
    MembershipPrompt,
    inspection_prompt,
    membership_prompt,
    membership_scores,
    render_context,
)
from dp_icl.probes.templates import PromptTemplate, Rendered, quoted, unquoted

__all__ = [
    "DEFENCES",
    "FORMATS",
    "QUERIES",
    "STATISTICS",
    "IdentifierFormat",
    "MembershipAUC",
    "MembershipPrompt",
    "PromptTemplate",
    "Rendered",
    "clean_statistic",
    "crafted_canaries",
    "format_of",
    "fresh_identifiers",
    "inspection_prompt",
    "membership_auc",
    "membership_prompt",
    "membership_scores",
    "quoted",
    "rank_p_value",
    "render_context",
    "sampled_canaries",
    "unquoted",
]
