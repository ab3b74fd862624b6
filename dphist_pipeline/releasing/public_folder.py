"""The public folder of a store beyond a single release: the catalogue, the pages, and the copy in a bucket.

Publications are made in this folder, and the catalogue is built from it. The address of a copy is kept in `store.json`.
Nothing comes back from a bucket: a public folder that was lost is put back from a backup, or made anew from the
journal.

Pages are rendered anew from public files: what a later version corrects need not stay online. Values, Parquet files
and audits stay as they are; see `publishing.published_pages`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dphist_pipeline.base.files import locked_folder, replace_public
from dphist_pipeline.errors import Halted, Refused
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.figure_files import DECLARED, are_current
from dphist_pipeline.publishing.public_names import place_of
from dphist_pipeline.publishing.published_files import (
    PublishedFilesDamaged,
    PublishedFolder,
    read_sealed_audit,
    refuse_links,
)
from dphist_pipeline.releasing._approvals import finish_withdrawals, set_aside
from dphist_pipeline.releasing._vouching import vouching_reader
from dphist_pipeline.releasing.publisher import Progress
from dphist_pipeline.releasing.store import FORM, Key, Store

if TYPE_CHECKING:
    from dphist_pipeline.publishing.bucket_sync import Sent


def no_address(root: Path) -> Refused:
    """A store that copies nothing anywhere."""
    return Refused(
        f"the store at {root} has no bucket: `dphist store publish --to s3://bucket/prefix` names one. What is "
        "published lies in its public folder; copy that anywhere.",
        code="no_address",
    )


class NotCopied(Halted):
    """Publications of this store are not in the bucket yet."""

    def __init__(self, problem: str, try_again: bool = False) -> None:
        self.problem, self.try_again = problem, try_again
        super().__init__(
            f"{problem} What is published stays published in the public folder, and nothing is spent again: mend it, "
            "then run `dphist store publish`, or the same command again."
        )


@dataclass
class Rendered:
    """What a run did, by place of the publication, such as `wards/period=all/revision=1`.

    `anew`: pages were replaced. `same`: this version would write the same. `left`: an old audit lacks what a page
    needs, or files are damaged.
    """

    anew: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublicFolder:
    """The public folder of a store, which one process at a time changes."""

    store: Store

    def refresh(
        self,
        key: Key,
        folders: Sequence[Path] = (),
        progress: Progress = lambda step: None,
        anew: bool = False,
        compared: Sequence[Key] | None = None,
    ) -> None:
        """Lists the current files, builds the catalogue, writes the pages, and copies to the bucket.

        Nothing is built where all hold `folders` (of releases) already; with none, or `anew`, it always is. A store of
        form 1 stays as it is. `compared`: the publications that are new or withdrawn, `key` by default.

        Raises:
            NotCopied: the bucket could not be written; the catalogue is built.
        """
        from dphist_pipeline.answering.catalogue import Catalogue

        public = self.store.public
        if self.store.form != FORM:
            progress("the catalogue stays as it is until `dphist store upgrade` was run")
            return

        def is_fresh() -> bool:
            if not folders or not (public / DerivedFiles.index).is_file():
                return False
            # The pages, which come last and cost least to read, are asked first.
            return (
                all(DerivedFiles(public).tell(folder) for folder in folders)
                and all(are_current(folder.parents[1]) for folder in folders)
                and all(Catalogue(public).is_up_to_date(folder) for folder in folders)
            )

        self._build_unless(is_fresh, key, progress, anew, [key] if compared is None else compared)
        if self.store.public_address is not None:
            self._copy(progress)

    def refresh_releases(
        self, releases: Sequence[str], made: Sequence[Path], progress: Progress = lambda step: None
    ) -> None:
        """Refreshes all that some releases have published, by calls that were killed before it, too; see `refresh`.

        `made`: what this process published, of each release in order: each compares with the one before it already.

        Raises:
            NotCopied: the bucket could not be written; the catalogue is built.
        """
        from dphist_pipeline.answering.catalogue import Catalogue

        store, public = self.store, self.store.public
        paths = [path for name in releases for path in sorted(public.glob(f"{name}/period=*/revision=*"))]
        keys = {path: key for path in paths if (key := store.key_of(path)) and PublishedFolder(path).stated_digest}
        if not keys:
            return
        # Pages come last, all at once: where they tell what was made last, they tell all that is in the catalogue.
        last = max(keys, key=lambda path: path.stat().st_mtime_ns)
        lacking = [*Catalogue(public).lacking(keys)] or [last]
        new = [keys[path] for path in lacking if _following(path) not in made]
        self.refresh(Key("released", "all", 1), lacking, progress, compared=new)

    def copying_to(self, address: str) -> PublicFolder:
        """The folder with another bucket (`s3://bucket/prefix`), which its store remembers; nothing is sent yet.

        What was sent to an earlier bucket stays there.
        """
        from dphist_pipeline.publishing.bucket_sync import check_address

        return PublicFolder(self.store.with_address(check_address(address)))

    def copy(self, progress: Progress = lambda step: None, everything: bool = False) -> Sent:
        """Brings the copy in the store's bucket to the state of the folder, whose catalogue is built if need be.

        Withdrawals that a crash cut short are finished first.

        Args:
            everything: send all files, whatever was sent before.

        Raises:
            Refused: the store has no bucket.
            NotCopied: the bucket could not be written.
        """
        from dphist_pipeline.answering.catalogue import Catalogue

        store, public, key = self.store, self.store.public, Key("copied", "all", 1)
        store.refuse_old_layout()
        if store.public_address is None:
            raise no_address(store.root)
        finish_withdrawals(store, store.ledger())
        released = {period.parent for period in public.glob("*/period=*")}
        pages = (folder / name for folder in released for name in (DerivedFiles.current, DerivedFiles.index))
        made_after = (public / DerivedFiles.index, *pages)
        self._build_unless(
            lambda: Catalogue(public).is_complete() and all(path.is_file() for path in made_after), key, progress
        )
        return self._copy(progress, everything)

    def upgrade(self, progress: Progress = lambda step: None) -> tuple[list[str], list[str]]:
        """Brings a store of form 1 to form 2, then the catalogue and the pages.

        Gives the paths that form 2 has not, and those of them that this call deleted. The next copy to a bucket empties
        them there, too. Cut short, the same call finishes it.

        Raises:
            NotCopied: the bucket could not be written; all else is done.
        """
        from dphist_pipeline.publishing.bucket_sync import keep_gone

        public = self.store.public
        with self.store.building():
            gone, deleted = keep_gone(public, self.store.bucket_memory), []
            for path in gone:
                refuse_links(public, (public / path).parent)
                with suppress(FileNotFoundError):
                    (public / path).unlink()
                    deleted.append(path)
                with suppress(OSError):  # a folder that holds more stays
                    for folder in [
                        folder for folder in (public / path).parents if folder.parent.is_relative_to(public)
                    ]:
                        folder.rmdir()
            upgraded = PublicFolder(self.store.upgrade())
        finish_withdrawals(upgraded.store, upgraded.store.ledger())
        upgraded.refresh(Key("upgraded", "all", 1), progress=progress, anew=True)
        return gone, deleted

    def render(self, release: str | None = None, progress: Progress = lambda step: None) -> Rendered:
        """Renders the pages of all publications anew, or of one release, then the catalogue and every `index.html`.

        Withdrawals that a crash cut short are finished first. Spends nothing.

        Raises:
            NotCopied: the bucket could not be written; all else is done.
        """
        from jinja2 import UndefinedError

        from dphist_pipeline.publishing.published_pages import PublishedPages

        store = self.store
        store.refuse_old_layout()
        finish_withdrawals(store, store.ledger())
        if not all(are_current(file.parent) for file in store.public.glob(f"{release or '*'}/{DECLARED}")):
            self.refresh(Key("rendered", "all", 1), progress=progress)  # cards tell the lines of figures
        done, read = Rendered(), vouching_reader(store)
        for place, folder in PublishedFolder.all_in(store.public):
            key = store.key_of(folder)
            if key is not None and release in (None, key.release):
                progress(place)
                try:
                    PublishedFolder(folder).refuse_links(store.public)
                    with store.building(), store.run(key) as scratch:
                        pages = PublishedPages.read(folder, read(folder)).outdated_pages()
                        for path, page in pages.items():
                            replace_public(folder / path, page, scratch)
                except PublishedFilesDamaged as error:
                    done.left[place] = error.problem  # the others come first; building the catalogue sets it aside
                except (KeyError, UndefinedError) as error:
                    done.left[place] = (
                        f"its audit, written by an earlier version, does not say what pages need: {error}"
                    )
                except OSError as error:  # such as a folder in the place of a page
                    done.left[place] = f"a page cannot be written: {error.strerror}"
                else:
                    (done.anew if pages else done.same).append(place)
        self.refresh(Key("rendered", "all", 1), progress=progress, anew=True)
        return done

    def _build_unless(
        self,
        is_fresh: Callable[[], bool],
        key: Key,
        progress: Progress,
        anew: bool = False,
        compared: Sequence[Key] = (),
    ) -> None:
        if is_fresh():
            return
        progress("updating the catalogue")
        with self.store.run(key) as scratch, self.store.building():
            if not is_fresh():  # somebody else may just have built it
                while (damaged := self._build_derived(scratch, anew)) is not None:
                    place = place_of(f"{damaged.folder.relative_to(self.store.public).as_posix()}/")
                    folder = self.store.public / (place or "")
                    if place is None or folder == self.store.published(key) or not folder.exists():
                        raise damaged
                    # It stops its own release alone; `doctor` and `ledger verify` name it until it is made anew.
                    progress(f"set aside, for its files are damaged: {place}")
                    set_aside(self.store, folder)
                for one in compared:
                    self._render_again(one, scratch)

    def _render_again(self, key: Key, scratch: Path) -> None:
        """Renders the pages that were made before what they tell: of a publication with figures, which were computed
        since, and of the next period, if any, which compare with a publication that is new, or withdrawn now.
        """
        from jinja2 import UndefinedError

        from dphist_pipeline.publishing.published_pages import PublishedPages

        published, read = self.store.published(key), vouching_reader(self.store)
        if not published.is_dir():
            return
        # A damaged publication stops its own release alone; `store pages` names what it could not render.
        with suppress(PublishedFilesDamaged, KeyError, UndefinedError):
            has_figures = (published.parents[1] / DECLARED).exists()
            for folder in filter(None, [published if has_figures else None, _following(published)]):
                PublishedFolder(folder).refuse_links(self.store.public)
                for path, page in PublishedPages.read(folder, read(folder)).outdated_pages().items():
                    replace_public(folder / path, page, scratch)

    def _build_derived(self, scratch: Path, anew: bool) -> PublishedFilesDamaged | None:
        """Builds what is made from all publications; the damage of one that stopped it."""
        from dphist_pipeline.answering import building

        public = self.store.public
        try:
            DerivedFiles(public).write_current_files(scratch, vouching_reader(self.store))
            building.build_apart(public, scratch, anew)
        except PublishedFilesDamaged as error:
            return error
        return None

    def _copy(self, progress: Progress, everything: bool = False) -> Sent:
        """Brings the bucket to the state of the folder, whose catalogue is built; one call of a machine at a time."""
        from dphist_pipeline.publishing.bucket_sync import NotSent

        bucket = self.store.bucket()
        assert bucket is not None
        try:
            with locked_folder(self.store.confidential):
                return bucket.send(vouching_reader(self.store), progress, everything)
        except NotSent as error:
            problem, passes = str(error), error.try_again
        except OSError as error:
            passes = False
            problem = f"{bucket.address} cannot be written: {type(error).__name__} on this machine."
        raise NotCopied(problem, passes)


def _following(published: Path) -> Path | None:
    """The publication of the next period; None where there is none, or where this one is damaged."""
    from dphist_pipeline.publishing.surroundings import following

    with suppress(PublishedFilesDamaged):
        return following(published.parents[1], read_sealed_audit(published))
    return None
