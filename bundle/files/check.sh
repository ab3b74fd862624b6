#!/bin/sh
# Publishes a table of invented people with the program in FOLDER, asks it, and publishes it again for nothing.
# All in a temporary folder that is deleted: it writes nothing else, and needs no network.
set -eu
umask 022

[ $# -eq 1 ] || {
  echo "usage: sh check.sh FOLDER" >&2
  exit 2
}
[ -x "$1/bin/dphist" ] || {
  echo "check.sh: there is no dphist in $1: install it first" >&2
  exit 1
}
programs=$(CDPATH='' cd -- "$1/bin" && pwd -P)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 143' INT TERM HUP
cd "$place"
# Nothing of this machine's own configuration is used or changed.
unset DPHIST_STORE DPHIST_LEDGER DPHIST_WITNESS DPHIST_OPERATOR_KEY
HOME=$place XDG_CONFIG_HOME=$place/config XDG_STATE_HOME=$place/state PATH=$programs:$PATH
export HOME XDG_CONFIG_HOME XDG_STATE_HOME PATH

step() { # what is done, then the command
  said=$1
  shift
  if "$@" >told 2>&1; then printf 'ok      %s\n' "$said"; else
    cat told >&2
    printf 'FAILED  %s\n' "$said" >&2
    exit 1
  fi
}

python - >visits.csv <<'END'
wards = ("surgery", "medicine", "maternity")
print("patient,ward,admitted_on")
for patient in range(3000):
    for visit in range(1 + patient % 4):
        print(f"{patient},{wards[(patient + visit) % 3]},2026-01-{5 + (patient + visit) % 7:02}")
END
cat >wards.yaml <<'END'
type: dphist_pipeline.HistogramRelease
attributes:
  {release: wards, source: visits.csv, privacy_unit: patient, max_rows_per_unit: 3, neighbours: add_remove,
   epsilon: 1, account: hospital, mechanism: geometric, period: week, period_column: admitted_on, period_format: iso,
   axes: [{column: ward, values: [surgery, medicine, maternity], other: true}]}
END
step "the packages fit each other" python -I -m pip --isolated check
step "a store" dphist init
step "an account" dphist ledger open hospital --privacy-unit patient --neighbours add_remove --total 1 --source visits.csv
step "a release of one week" dphist release wards.yaml --period 2026-01-05
step "an answer" dphist answer wards --where "ward = surgery"
cat told
before=$(cat store/public/wards/*/*/histogram.parquet | cksum)
step "the same week again" dphist release wards.yaml --period 2026-01-05
[ "$before" = "$(cat store/public/wards/*/*/histogram.parquet | cksum)" ] || {
  echo "FAILED  it was published anew" >&2
  exit 1
}
step "the ledger" dphist ledger verify
echo "All is well: nothing of this check is left."
