"""CLAIMS, the only list of the claims: a new one is a file of its own and an entry here."""

from __future__ import annotations

from headstart.claims.base import Claim
from headstart.claims.fine_tuning import FineTuning
from headstart.claims.generations import Generations
from headstart.claims.in_domain import InDomain
from headstart.claims.labels_saved import LabelsSaved
from headstart.claims.layers import Layers
from headstart.claims.masking import Masking
from headstart.claims.more_text import MoreText
from headstart.claims.probes import Probes
from headstart.claims.senses import SensesOfWords
from headstart.claims.six_tasks import SixTasks

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        Generations(),
        LabelsSaved(),
        Layers(),
        Probes(),
        FineTuning(),
        Masking(),
        MoreText(),
        InDomain(),
        SensesOfWords(),
        SixTasks(),
    )
}
"""By name, in the order of the page."""
