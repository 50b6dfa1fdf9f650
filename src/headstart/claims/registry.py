"""CLAIMS, the only list of the claims: a new one is a file of its own and an entry here."""

from __future__ import annotations

from headstart.claims.base import Claim
from headstart.claims.generations import Generations

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in (Generations(),)}
"""By name, in the order of the page."""
