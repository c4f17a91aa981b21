"""Vectors, part by part -> one `.npy` file, in flat memory."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np


def write_vectors(path: Path, parts: Iterable[np.ndarray], vector_size: int) -> None:
    """Write float32 rows as they come; how many they are is filled in at the end."""
    rows = 0
    with path.open("wb") as file:
        _write_header(file, rows, vector_size)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype="<f4").data)
            rows += len(part)
        file.seek(0)
        _write_header(file, rows, vector_size)  # of the same length: numpy leaves room for any number of rows


def _write_header(file: BinaryIO, rows: int, vector_size: int) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, vector_size)}
    np.lib.format.write_array_header_1_0(file, header)
