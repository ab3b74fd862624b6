"""A published release as its readers hold it: where its files are, what its audit says, what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

from dphist_pipeline.errors import Refused

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from dphist_pipeline.answering.asking import Publication
    from dphist_pipeline.applications.blocking import Blocking
    from dphist_pipeline.applications.classification import Classifier
    from dphist_pipeline.applications.synthetic_records import SyntheticRecords
    from dphist_pipeline.applications.whole_release import WholeRelease
    from dphist_pipeline.estimates.answers import Answer, Quantile, RangeAnswer
    from dphist_pipeline.estimates.chosen_cells import Condition, End
    from dphist_pipeline.releasing.store import Store

    Box = Mapping[str, Condition]

_ALL: Mapping[str, Any] = MappingProxyType({})


def not_a_release(value: object, name: str, method: str = "change_since") -> Refused:
    """Something else where a release is asked for, such as the day of its period."""
    value = type(value).__name__
    return Refused(
        f"{method} takes another Release, not a {value}: "
        f"give it Release.published(Store.open(FOLDER), {name!r}, PERIOD)",
        code="not_a_release",
    )


@dataclass(frozen=True)
class Release:
    """A published release: the folder of its files, the facts in `audit.json`, and answers.

    In questions, `box` holds conditions on axes, by default none; `with_chance`: see `changes`. `replayed`: it had been
    published before, so nothing was spent and no record was read.
    """

    path: Path
    audit: dict[str, Any]
    replayed: bool

    @classmethod
    def published(cls, store: Store | Path | str, name: str, period: str | None = None) -> Release:
        """The latest revision of a published release, of a period or of its latest one.

        The store may be a copy of a public folder.

        Raises:
            NotPublished: naming what is there.
            PublishedFilesDamaged: a file is missing or altered.
        """
        from dphist_pipeline.answering.published import latest_revision
        from dphist_pipeline.publishing.published_files import read_audit
        from dphist_pipeline.releasing.store import Store

        public = Store.public_folder(store) if isinstance(store, Path | str) else store.public
        folder = latest_revision(public, name, period, family=True)
        return cls(folder, read_audit(folder), replayed=True)

    def __repr__(self) -> str:
        facts = self.audit
        return f"<Release {facts['release']}, period {facts['period']}, revision {facts['revision']}, in {self.path}>"

    @property
    def tables(self) -> dict[str, Release]:
        """The tables of a family by name, each of them a release to ask; of any other release, itself."""
        from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit

        if "tables" not in self.audit:
            return {self.audit["release"]: self}
        folders = {name: PublishedFolder(self.path).table(name) for name in self.audit["tables"]}
        return {name: Release(folder, read_audit(folder), self.replayed) for name, folder in folders.items()}

    @property
    def first_table(self) -> Release:
        """The first table of a family, which has the same total as all others; any other release itself."""
        return next(iter(self.tables.values()))

    @property
    def table(self) -> pl.DataFrame:
        """The published histogram, one row a declared cell."""
        import polars as pl

        return pl.read_parquet(self.path / "histogram.parquet", glob=False)

    @property
    def arrow(self) -> pa.Table:
        """The same as `table`, in Arrow."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.path / "histogram.parquet").read()

    def answer(self, /, **axes: Condition) -> Answer:
        """The estimated count in a box of cells, with its error bar: `answer(age=(60, 80), ward="surgery")`."""
        return self._best_publication((), axes).answer(axes)

    def range(self, axis: str, low: End, high: End, box: Box = _ALL) -> RangeAnswer:
        """The estimated count in [low, high) of a binned axis, whether or not its ends are edges of bins.

        The ends are in axis units, or days; None for an open end. `box` is about the other axes.
        """
        return self._best_publication((), box, {axis: None}).range(axis, (low, high), box)

    def marginal(self, by: Sequence[str], box: Box = _ALL) -> pl.DataFrame:
        """The estimated counts by some axes or levels of them, each with its error bar: `marginal(["ward", "age"])`."""
        return _frame(self._best_publication(by, box).marginal(by, box))

    def pivot(self, rows: Sequence[str], column: str, box: Box = _ALL) -> pl.DataFrame:
        """Counts by axes or levels; the categories of one more are columns, and a total. All have intervals.

        The last row, where `is_total`, has the totals of the columns.
        """
        from dphist_pipeline.answering.pivots import Pivot

        return _frame(Pivot.of(self._best_publication([*rows, column], box), rows, column, box).rows())

    def share(self, part: Box, whole: Box = _ALL, *, with_chance: bool = False) -> Answer:
        """What share of a box lies in a part of it: `share({"ward": "surgery"}, {"age": (60, None)})`."""
        return self._best_publication((), part, whole, with_chance=with_chance).share(part, whole)

    @overload
    def quantile(self, axis: str, q: float = ..., box: Box = ...) -> Quantile: ...

    @overload
    def quantile(self, axis: str, q: Sequence[float], box: Box = ...) -> list[Quantile]: ...

    def quantile(self, axis: str, q: float | Sequence[float] = 0.5, box: Box = _ALL) -> Quantile | list[Quantile]:
        """In which bin of an axis a quantile lies, with the bins that noise leaves open; a list of q gives a list.

        Each q is a share of the rows, between 0 and 1.
        """
        shares = q if isinstance(q, Sequence) else [q]
        quantiles = self._best_publication((), box, {axis: None}).quantiles(axis, shares, box)
        return quantiles if isinstance(q, Sequence) else quantiles[0]

    @overload
    def mean(
        self, axis: str, low: End = ..., high: End = ..., box: Box = ..., *, with_chance: bool = ..., by: None = ...
    ) -> Answer: ...

    @overload
    def mean(
        self, axis: str, low: End = ..., high: End = ..., box: Box = ..., *, with_chance: bool = ..., by: Sequence[str]
    ) -> pl.DataFrame: ...

    def mean(
        self,
        axis: str,
        low: End = None,
        high: End = None,
        box: Box = _ALL,
        *,
        with_chance: bool = False,
        by: Sequence[str] | None = None,
    ) -> Answer | pl.DataFrame:
        """The mean of a binned axis or an amount over the rows of a box, in axis units.

        Args:
            low: no value of an open bin lies below it; in axis units, or a day.
            high: no value of an open bin lies above it; as `low`.
            by: axes or levels, for a table with a row for each combination: `mean("cost", by=["ward"])`.
        """
        publication = self._best_publication(by or (), box, {axis: None}, with_chance=with_chance)
        places = axis, low, high, box
        return publication.mean(*places) if by is None else _frame(publication.mean_by(by, *places))

    @overload
    def sum(
        self, axis: str, low: End = ..., high: End = ..., box: Box = ..., *, with_chance: bool = ..., by: None = ...
    ) -> Answer: ...

    @overload
    def sum(
        self, axis: str, low: End = ..., high: End = ..., box: Box = ..., *, with_chance: bool = ..., by: Sequence[str]
    ) -> pl.DataFrame: ...

    def sum(
        self,
        axis: str,
        low: End = None,
        high: End = None,
        box: Box = _ALL,
        *,
        with_chance: bool = False,
        by: Sequence[str] | None = None,
    ) -> Answer | pl.DataFrame:
        """The sum of a binned axis or an amount over the rows of a box; its arguments as for `mean`."""
        publication = self._best_publication(by or (), box, {axis: None}, with_chance=with_chance)
        places = axis, low, high, box
        return publication.sum(*places) if by is None else _frame(publication.sum_by(by, *places))

    def rate(
        self, by: Sequence[str], population: Any, per: float = 100_000, box: Box = _ALL, *, with_chance: bool = False
    ) -> pl.DataFrame:
        """The estimated counts for each `per` people of a population.

        Args:
            by: axes or levels.
            population: a frame or table: the columns of the axes, and `population`, the people, above 0.
        """
        import pyarrow as pa

        return _frame(self._best_publication(by, box, with_chance=with_chance).rate(by, pa.table(population), per, box))

    def standardised(
        self,
        by: Sequence[str],
        over: str,
        population: Any,
        per: float = 100_000,
        box: Box = _ALL,
        *,
        with_chance: bool = False,
    ) -> pl.DataFrame:
        """Rates as if each group had a standard population along `over`.

        Args:
            by: axes or levels; none for one row.
            over: the axis or level to standardise over, such as age.
            population: as in `rate`, with the columns of `over`, too, and `standard`, the people of the standard.
        """
        import pyarrow as pa

        publication = self._best_publication([*by, over], box, with_chance=with_chance)
        return _frame(publication.standardised(by, over, pa.table(population), per, box))

    def ranks(self, axis: str, box: Box = _ALL, *, with_chance: bool = False) -> pl.DataFrame:
        """The ranks of the categories of an axis by their counts, the largest first; all intervals hold together."""
        return _frame(self._best_publication([axis], box, with_chance=with_chance).ranks(axis, box))

    def difference(self, first: Box, second: Box, *, with_chance: bool = False) -> Answer:
        """The count in one box less that in another."""
        return self._best_publication((), first, second, with_chance=with_chance).difference(first, second)

    def ratio(self, first: Box, second: Box, *, with_chance: bool = False) -> Answer:
        """The count in one box divided by that in another; the upper end of its interval may be infinite."""
        return self._best_publication((), first, second, with_chance=with_chance).ratio(first, second)

    def changes(self, box: Box = _ALL, *, with_chance: bool = False) -> pl.DataFrame:
        """The change of a count from each published period of the release to the next one.

        Args:
            with_chance: whether intervals cover chance, too, as if counts varied as Poisson's do around their means;
                that is too little where persons have several rows.
        """
        return _frame(self._best_publication(with_chance=with_chance).changes(box))

    def over(self, first: str | None = None, last: str | None = None, box: Box = _ALL) -> Answer:
        """The count in a box over the published periods of the release from the first to the last, together."""
        return self._best_publication().over(first, last, box)

    def change_since(self, earlier: Release, box: Box = _ALL, *, with_chance: bool = False) -> Answer:
        """What the count in a box changed by since another publication, with its error bar."""
        if not isinstance(earlier, Release):
            raise not_a_release(earlier, self.audit["release"])
        return self._best_publication((), box, with_chance=with_chance).change_since(
            earlier._best_publication((), box), box
        )

    def band(self, level: float = 0.95, box: Box = _ALL) -> pl.DataFrame:
        """Every cell with a band; with probability `level`, in (0, 1), it holds all their true counts at once."""
        return _frame(self._best_publication().band(level, box))

    def whole(self) -> pl.DataFrame:
        """The release as whole numbers from 0 whose sums stay near the unbiased ones; without intervals."""
        return _frame(self._best_publication().whole())

    def synthesize(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        low: Mapping[str, End] = _ALL,
        high: Mapping[str, End] = _ALL,
        whole_numbers: Sequence[str] = (),
        interpolate: bool = False,
    ) -> SyntheticRecords:
        """Synthetic records from the whole counts, which no row of is a person; nothing is spent.

        They are drawn when they are read: `.write("records.parquet")`, `polars.DataFrame(records)`, `.to_arrow()`.

        Args:
            seed: for the same records again; fresh by default.
            low: lowest value of each axis with an open bin below.
            high: highest value of each axis with an open bin above.
            whole_numbers: axes whose values are whole numbers.
            interpolate: let density rise and fall within bins; uniform by default.

        Raises:
            Refused: an option does not suit the grid, or the whole total is 0.
        """
        from dphist_pipeline.applications.synthetic_records import SyntheticRecords
        from dphist_pipeline.applications.values_in_bins import Spread
        from dphist_pipeline.applications.whole_family import WholeFamily

        whole = WholeFamily.read(self.path) if "tables" in self.audit else self._whole_release()
        return SyntheticRecords.of(whole, rows, seed, Spread(low, high, whole_numbers, interpolate))

    def train(self, target: str, features: Sequence[str] | None = None, estimator: Any = None) -> Classifier:
        """A classifier trained from the cells, weighted by their whole counts; nothing is spent.

        Args:
            estimator: with `fit(features, classes, sample_weight)` and `predict`; by default scikit-learn's tree.

        Raises:
            Refused: an axis is unknown, there is nothing to learn, or scikit-learn is missing.
        """
        from dphist_pipeline.applications.classification import train

        return train(self._whole_release(), target, features, estimator)

    def block(
        self,
        other: Release,
        by: Sequence[Sequence[str]] | None = None,
        pairs: int | None = None,
        least: int = 20,
        *,
        released_groups: bool = False,
    ) -> Blocking:
        """Blocks for record linkage with the register of another owner: columns and rules for Splink; costs nothing.

        Args:
            other: the other owner's release, with the same bins and categories.
            by: for each partition its axes; a pair is compared if one partition holds it in one block.
            pairs: cut until a partition has no more expected pairs; 100 for each record by default.
            least: expected records of both owners that a block keeps.
            released_groups: in place of `by`: blocks are the groups of cells that this release has published, as in
                DPCube's paper; `pairs` and `least` do not change them.

        Raises:
            Refused: the releases do not have these axes in common, or this one has published no groups.
        """
        from dphist_pipeline.applications.blocking import blocking, group_blocking, published_groups
        from dphist_pipeline.applications.whole_release import application_refused

        if not isinstance(other, Release):
            raise not_a_release(other, self.audit["release"], "block")
        if released_groups == (by is not None):
            raise application_refused(
                "give either `by`, which cuts blocks from both releases, or `released_groups=True`"
            )
        one, two = self._whole_release(), other._whole_release()
        return (
            group_blocking(one, two, published_groups(self.path))
            if by is None
            else blocking(one, two, by, pairs, least)
        )

    def _whole_release(self) -> WholeRelease:
        from dphist_pipeline.applications.whole_release import WholeRelease

        return WholeRelease.read(self.path)

    def _best_publication(self, by: Sequence[str] = (), *boxes: Box, with_chance: bool = False) -> Publication:
        """What answers: of a table of a family, whichever table knows these axes best; itself if no box is given."""
        from dphist_pipeline.answering.asking import Publication
        from dphist_pipeline.answering.best_table import best_publication

        own = Publication.read(self.path)
        publication = best_publication(own, by, boxes) if boxes else own
        return replace(publication, with_chance=True) if with_chance else publication


def _frame(columns: Any) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(columns)
