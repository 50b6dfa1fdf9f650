"""Errors that a user can cause. The command line prints them as one sentence and exits with 2; others are bugs.

An error about an argument or about data is also a ValueError, as callers used to scikit-learn expect.
"""


class HeadstartError(Exception):
    """One sentence: what is wrong, where, what was found, what was expected, and what to do."""


class ConfigError(HeadstartError, ValueError):
    """A setting that does not exist, has a bad value, or contradicts another."""


class BudgetError(ConfigError):
    """The time budget ran out before training could start; a larger one would do."""


class DataError(HeadstartError, ValueError):
    """A text or data file that cannot be used as it is."""


class CheckpointError(HeadstartError):
    """A run directory, or its saved state, that cannot be read, written or resumed."""
