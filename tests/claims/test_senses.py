from __future__ import annotations

import numpy as np
import pytest

from headstart.claims.base import Setting
from headstart.claims.senses import findings_of, senses_of
from headstart.inspection.senses import Senses, SensesInLayer
from headstart.progress import result_of


def senses(encoder: str, difference: float, right: float) -> Senses:
    counts = np.stack([np.full(40, right), np.ones(40)], axis=1)
    bounds = (difference - 0.0001, difference + 0.0001)
    layer = SensesInLayer(0, 0.5, 0.5 - difference, difference, bounds, right, (right, right), (), counts)
    return Senses(encoder, 40, 0.5, (layer,))


def test_word_vectors_are_expected_near_zero_and_others_above_them() -> None:
    static = senses("words", 0.0, 0.5)
    assert [finding.verdict for finding in findings_of(static, static)] == ["holds"]
    assert [finding.verdict for finding in findings_of(senses("elmo", 0.02, 1.0), static)] == ["holds", "holds"]
    assert [finding.verdict for finding in findings_of(senses("elmo", -0.02, 0.5), static)] == ["fails", "undecided"]


def test_real_word_vectors_are_at_chance(setting: Setting) -> None:
    found = result_of(senses_of(setting, setting.encoders["static"]))
    (finding,) = findings_of(found, found)
    assert finding.verdict == "holds"
    assert found.layers[0].accuracy == pytest.approx(found.chance)
