"""CLAIMS, the only list of the claims: a new one is a file of its own and an entry here."""

from __future__ import annotations

from headstart.claims.base import Claim
from headstart.claims.generations import Generations
from headstart.claims.probes import Probes
from headstart.claims.senses import SensesOfWords

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in (Generations(), Probes(), SensesOfWords())}
"""By name, in the order of the page."""
