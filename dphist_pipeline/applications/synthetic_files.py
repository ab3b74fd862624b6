"""Writes synthetic records into a Parquet file, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.applications.whole_release import application_refused
from dphist_pipeline.errors import Refused

if TYPE_CHECKING:
    from dphist_pipeline.applications.synthetic_records import SyntheticRecords


def check_output(file: Path, overwrite: bool) -> None:
    """Refuses a file that cannot be written, before any work.

    Args:
        overwrite: whether it may be there.

    Raises:
        Refused: another ending than .parquet, a missing folder, or a file that is there.
    """
    if file.suffix.lower() != ".parquet":
        raise application_refused(f"the output {file} must end in .parquet")
    if file.is_dir() or not file.parent.is_dir():
        raise application_refused(f"the output {file} {'is a folder' if file.is_dir() else 'lies in no folder'}")
    if file.exists() and not overwrite:
        raise _there(file)


def write_synthetic(
    records: SyntheticRecords, file: Path, overwrite: bool = False, step: Callable[[str], None] = lambda name: None
) -> None:
    """Draws the records into a file, whose metadata say that it is synthetic and of which release.

    Args:
        records: to draw; 10⁸ rows of three columns take some 20 s, and the memory of a batch.
        file: replaced if it is there and `overwrite`.
        overwrite: whether it may be there.
        step: called before each batch.

    Raises:
        Refused: see `check_output`; or the disk refuses it.
    """
    check_output(file, overwrite)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with pq.ParquetWriter(draft, records.schema, compression="zstd") as writer:
            for batch in records.draw():
                step(file.name)
                writer.write_batch(batch)
        if not overwrite:
            file.open("xb").close()  # takes the name, or finds that another process has
        draft.replace(file)
    except FileExistsError:
        raise _there(file) from None
    except (OSError, pa.ArrowException) as error:
        problem = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "the disk refused it"
    else:
        return
    finally:
        draft.unlink(missing_ok=True)
    raise application_refused(f"the output {file} cannot be written: {problem}")


def _there(file: Path) -> Refused:
    return application_refused(f"the output {file} is there already; name another file, or add --overwrite")
