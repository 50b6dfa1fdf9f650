"""What a user can cause. Each is shown as one sentence on stderr with exit code 2; anything else is our bug."""


class HeadstartError(Exception):
    """A sentence saying what, where, got, wanted, and what to do."""


class ConfigError(HeadstartError):
    """A setting that does not exist, or that contradicts another."""


class BudgetError(ConfigError):
    """A time that is over before the work has begun; more of it would do."""


class DataError(HeadstartError):
    """A text or data file that cannot be used as it is."""


class CheckpointError(HeadstartError):
    """A run directory or its state that cannot be read, written or continued."""
