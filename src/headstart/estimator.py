"""Estimators with a head start, as scikit-learn knows them: fit, predict, score, get_params, clone, pickle."""

from __future__ import annotations

from headstart.transfer.estimator_coref import CorefResolver
from headstart.transfer.estimator_labels import PairClassifier, TextClassifier
from headstart.transfer.estimator_qa import QuestionAnswerer
from headstart.transfer.estimator_roles import RoleLabeler
from headstart.transfer.estimator_tags import Tagger

__all__ = ["CorefResolver", "PairClassifier", "QuestionAnswerer", "RoleLabeler", "Tagger", "TextClassifier"]

for _kind in (CorefResolver, PairClassifier, QuestionAnswerer, RoleLabeler, Tagger, TextClassifier):
    _kind.__module__ = __name__  # what pickles name, so that they open wherever the class moves to
