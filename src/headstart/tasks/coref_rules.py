"""How answers are scored: chains by CoNLL's metrics, or GAP's pronouns by its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from headstart.config import Table
from headstart.errors import DataError
from headstart.metrics import F1, Metric
from headstart.tasks.coref_documents import Chain, Chains, CorefDocument
from headstart.tasks.coref_scores import CONLL_F1, TITLES, conll_counts, summed_scores
from headstart.tasks.gap import gap_counts, gap_scores

Documents = Sequence[CorefDocument]
Found = Sequence[Chains]
GENDERS = {"masculine": "masculine F1", "feminine": "feminine F1"}


class Rules(Protocol):
    """The part of a task that counts what is right."""

    metric: ClassVar[Metric]
    titles: ClassVar[dict[str, str]]

    def check(self, document: CorefDocument) -> None:
        """Refuse a document that cannot be scored so."""
        ...

    def counts(self, document: CorefDocument, answer: Chains) -> Sequence[float]: ...
    def scores(self, documents: Documents, answers: Found) -> dict[str, float]: ...
    def details(self, documents: Documents, answers: Found) -> Table: ...
    def describe(self, details: Table) -> list[str]: ...


class ChainRules:
    """CoNLL F1, the mean of MUC, B-cubed and CEAF-e; LEA and the mentions beside it."""

    metric: ClassVar[Metric] = CONLL_F1
    titles: ClassVar[dict[str, str]] = {"conll_f1": "CoNLL F1"} | {
        f"{name}_f1": title for name, title in TITLES.items()
    }

    def check(self, document: CorefDocument) -> None:
        gold_chains(document)

    def counts(self, document: CorefDocument, answer: Chains) -> Sequence[float]:
        return conll_counts(gold_chains(document), answer.chains)

    def scores(self, documents: Documents, answers: Found) -> dict[str, float]:
        found = {name: row["f1"] for name, row in self.details(documents, answers)["parts"].items()}
        mean = sum(found[name] for name in ("muc", "b_cubed", "ceaf_e")) / 3
        return {"conll_f1": mean} | {f"{name}_f1": score for name, score in found.items()}

    def details(self, documents: Documents, answers: Found) -> Table:
        found = summed_scores([gold_chains(document) for document in documents], [each.chains for each in answers])
        return {
            "parts": {name: {"recall": s.recall, "precision": s.precision, "f1": s.f1} for name, s in found.items()}
        }

    def describe(self, details: Table) -> list[str]:
        width = max(map(len, TITLES.values()))
        lines = [f"{'':<{width}}  precision    recall        F1"]
        for name, row in details["parts"].items():
            shares = "  ".join(f"{100 * row[key]:6.1f} %" for key in ("precision", "recall", "f1"))
            lines.append(f"{TITLES[name].removesuffix(' F1'):<{width}}   {shares}")
        return lines


class GapRules:
    """F1 over the names that pronouns refer to, by gender, and bias: feminine F1 over masculine F1."""

    metric: ClassVar[Metric] = F1
    titles: ClassVar[dict[str, str]] = {"f1": "F1", "masculine_f1": "masculine F1", "feminine_f1": "feminine F1"}

    def check(self, document: CorefDocument) -> None:
        if document.pronoun is None:
            raise DataError(
                f"{document.where}: has chains, but other documents of the same file are GAP's. Score them apart."
            )

    def counts(self, document: CorefDocument, answer: Chains) -> Sequence[float]:
        return gap_counts(document, answer.chains)

    def scores(self, documents: Documents, answers: Found) -> dict[str, float]:
        found = gap_scores(documents, [answer.chains for answer in answers])
        return {name: found[name.removesuffix("_f1") if name != "f1" else name] or 0.0 for name in self.titles}

    def details(self, documents: Documents, answers: Found) -> Table:
        return {"bias": gap_scores(documents, [answer.chains for answer in answers])["bias"]}

    def describe(self, details: Table) -> list[str]:
        bias = details["bias"]
        said = "not defined, as one of the two is 0" if bias is None else f"{bias:.2f}"
        return [f"bias (feminine F1 / masculine F1): {said}"]


CHAIN_RULES, GAP_RULES = ChainRules(), GapRules()


def gold_chains(document: CorefDocument) -> tuple[Chain, ...]:
    if document.pronoun is not None:
        raise DataError(
            f"{document.where}: is an example of GAP, which has a pronoun and two names but no chains. `evaluate` "
            f"scores it; nothing is learned from it."
        )
    if document.chains is None:
        raise DataError(f"{document.where}: this document has no chains, so that nothing can be learned or scored.")
    return document.chains
