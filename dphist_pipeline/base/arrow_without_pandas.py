"""Keeps Arrow from importing pandas, which takes longer than a small release."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _NoPandas(MetaPathFinder):
    """Hides pandas."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Finds no pandas, and leaves all other modules to other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def arrow_without_pandas() -> None:
    """Has Arrow find no pandas for as long as the process lives; everybody else still may import it.

    Arrow looks once, at the first list that it converts. For commands, which are given no frame of pandas.
    """
    import pyarrow as pa

    hidden = _NoPandas()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
