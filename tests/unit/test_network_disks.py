"""Disks that machines share: found in the mount table of Linux, as proc(5) describes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dphist_pipeline.base import files
from dphist_pipeline.base.files import network_disk, network_type

# A machine's own table, with shares of several kinds; a mount point with a blank, and optional fields or none.
MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
61 27 0:52 / /srv/office rw,relatime shared:30 - nfs4 files.office.example:/export rw,vers=4.2,proto=tcp
62 27 0:53 / /srv/old\\040share rw,relatime - nfs files:/old rw,vers=3,nolock
63 27 0:54 / /srv/windows rw,relatime shared:33 master:2 - cifs //files/share rw,vers=3.1.1
64 27 0:55 / /home/me/remote rw,nosuid - fuse.sshfs me@files:/home rw,user_id=1000
65 27 0:56 / /home/me/stick rw,nosuid - fuseblk /dev/sdb1 rw
66 27 0:57 / /mnt/nfs4 rw - tmpfs nfs4 rw
"""


@pytest.mark.parametrize(
    ("minor", "expected"),
    [(52, "nfs4"), (53, "nfs"), (54, "cifs"), (55, "fuse.sshfs"), (56, None), (57, None), (21, None), (99, None)],
)
def test_the_device_of_a_file_names_its_file_system(minor: int, expected: str | None) -> None:
    assert network_type(os.makedev(0, minor), MOUNTS) == expected


def test_a_local_disk_is_none_and_neither_is_a_damaged_table() -> None:
    assert network_type(os.makedev(254, 0), MOUNTS) is None
    assert network_type(os.makedev(0, 52), "\n - nfs4\n1 2\n") is None


def test_a_file_that_is_not_there_yet_is_on_the_disk_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, table = tmp_path.stat().st_dev, tmp_path / "mountinfo"
    named = f"{os.major(device)}:{os.minor(device)}"
    table.write_text(f"61 27 {named} / {tmp_path} rw - nfs4 files:/export rw\n", encoding="utf-8")
    monkeypatch.setattr(files, "_MOUNTS", table)
    assert network_disk(tmp_path / "new" / "ledger.sqlite") == "nfs4"
    monkeypatch.setattr(files, "_MOUNTS", tmp_path / "no such table")
    assert network_disk(tmp_path) is None
