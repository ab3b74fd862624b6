"""What `dphist doctor` finds of an office, by its JSON."""

from __future__ import annotations

from office import Office

from dphist_pipeline.health import doctor

NAMES = [check.__name__ for check in doctor.CHECKS]
SAME_DISK = "lies on the same disk"


def examined(office: Office, *words: str) -> dict[str, dict[str, str]]:
    """What each check finds; the command changes nothing, and its exit code and JSON are as promised."""
    before = office.state()
    done = office.run("doctor", "--json", "--store", office.store, *words)
    assert office.state() == before
    told = done.json
    assert told["schema_version"] == 1 and set(told) == {"schema_version", "store", "at", "user", "state", "checks"}
    assert [finding["check"] for finding in told["checks"]] == NAMES
    states = [finding["state"] for finding in told["checks"]]
    assert told["state"] == max(states, key=("ok", "warning", "fault").index)
    assert done.code == (1 if "fault" in states else 0) and done.err == ""
    for finding in told["checks"]:
        assert set(finding) == {"check", "state", "seen", "mend"} and "\n" not in finding["seen"] + finding["mend"]
        assert bool(finding["mend"]) == (finding["state"] != "ok"), finding
    return {finding["check"]: finding for finding in told["checks"]}


def all_well(found: dict[str, dict[str, str]]) -> None:
    """Nothing is wrong but that a test has one disk, and so few records that a total's interval may hold 0."""
    wrong = {name: finding for name, finding in found.items() if finding["state"] != "ok"}
    assert set(wrong) <= {"witness", "doubtful"} and SAME_DISK in found["witness"]["seen"], wrong
