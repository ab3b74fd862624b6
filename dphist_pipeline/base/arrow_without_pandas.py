"""Keeps Arrow from importing pandas, which takes longer than a small release."""

from __future__ import annotations

import sys
import threading
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class _Pandas(MetaPathFinder):
    """Hides pandas from the thread that made it, until it is found again; then it is shown to Arrow once imported."""

    def __init__(self) -> None:
        self.hidden_from: int | None = threading.get_ident()

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Finds pandas alone, and leaves all other modules to other finders."""
        if fullname != "pandas":
            return None
        if self.hidden_from == threading.get_ident():
            raise ModuleNotFoundError(name=fullname)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_show(module: ModuleType) -> None:
                import pyarrow as pa

                execute(module)
                _ = pa.lib._pandas_api.pd  # Arrow looks again where pandas has to be there

            setattr(spec.loader, "exec_module", execute_and_show)  # noqa: B010, mypy takes a method for constant
        return spec


def arrow_without_pandas() -> None:
    """Has Arrow import no pandas where nobody else has; everybody still may import it, and then Arrow knows it.

    Arrow looks once, at the first list that it converts, and would take a later frame of pandas for a mere sequence.
    """
    import pyarrow as pa

    if "pandas" in sys.modules or any(isinstance(finder, _Pandas) for finder in sys.meta_path):
        return
    pandas = _Pandas()
    sys.meta_path.insert(0, pandas)
    try:
        pa.array([0])
    finally:
        pandas.hidden_from = None
