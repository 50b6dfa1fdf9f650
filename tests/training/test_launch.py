from __future__ import annotations

import subprocess
import sys

import pytest

from headstart.errors import ConfigError
from headstart.training.launch import Launch, launch_of

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "1",
    "GROUP_WORLD_SIZE": "2",
}


def test_the_place_of_a_process_is_that_of_its_launcher() -> None:
    assert launch_of(TORCHRUN) == Launch(rank=3, world=4, local_rank=1, machine=1, machines=2, joins=True)


@pytest.mark.parametrize("missing", ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"])
def test_without_a_launcher_a_process_is_alone(missing: str) -> None:
    """Other programs set WORLD_SIZE too."""
    assert launch_of({name: value for name, value in TORCHRUN.items() if name != missing}) == Launch()


@pytest.mark.parametrize(("name", "value"), [("WORLD_SIZE", "two"), ("RANK", "-1"), ("RANK", "4")])
def test_an_environment_that_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        launch_of({**TORCHRUN, name: value})


def test_torch_is_not_needed_to_know_the_place() -> None:
    code = "import sys, headstart.training.launch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
