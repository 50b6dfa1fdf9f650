"""Writing that either happened or did not: a temporary name, flushed to the disk, then renamed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headstart.errors import CheckpointError

PARTIAL = ".partial"


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place. A failure leaves `path` as it was."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        write(partial)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}). What was saved before is "
            f"intact; make room or choose another --out, and go on with --resume."
        ) from error


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda partial: _write_bytes(partial, text.encode("utf-8")))


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Equal tensors give equal files: there is one entry of metadata, because more come out in any order."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, lambda partial: save_file(plain, partial, {"format": "pt"}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: there is no such weights file.") from error
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not a whole safetensors file ({error}).") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
