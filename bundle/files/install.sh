#!/bin/sh
# Installs dphist from this folder alone. Nothing is fetched; nothing outside of FOLDER is written.
set -eu
umask 022

refuse() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

usage() {
  cat >&2 <<'END'
usage: sh install.sh [--command-line] [--python PYTHON] FOLDER
  FOLDER          a new folder for the program, such as /opt/dphist
  --command-line  without Dagster, spreadsheets, PostgreSQL and object storage
  --python        the Python that runs it, python3 by default
END
  exit 2
}

parts=office python=python3 target=
while [ $# -gt 0 ]; do
  case $1 in
    --command-line) parts=command-line ;;
    --python)
      [ $# -ge 2 ] || usage
      python=$2
      shift
      ;;
    -*) usage ;;
    *)
      [ -z "$target" ] || usage
      target=$1
      ;;
  esac
  shift
done
[ -n "$target" ] || usage
case $target in
  /*) ;;
  *) target=$(pwd -P)/$target ;;
esac
# `-e` does not see a link that leads nowhere.
if [ -e "$target" ] || [ -h "$target" ]; then
  refuse "$target is there already: name a new folder, or move the old one away first"
fi
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
command -v "$python" >/dev/null || refuse "there is no $python: install a Python that README.txt names, or name one by --python"
case $python in
  */*) python=$(CDPATH='' cd -- "$(dirname -- "$python")" && pwd -P)/${python##*/} ;;
esac
cd "$here"

# Hashes come before anything of this folder runs.
if command -v sha256sum >/dev/null; then
  sums="sha256sum -c"
elif command -v shasum >/dev/null; then
  sums="shasum -a 256 -c"
else
  refuse "there is neither sha256sum nor shasum to compare files with: install one of them"
fi
[ -s SHA256SUMS ] || refuse "$here has no SHA256SUMS: unpack the archive again"
told=$($sums SHA256SUMS 2>&1) || {
  printf '%s\n' "$told" | grep -v ': OK$' | head -n 20 >&2 || :
  refuse "these files are not those that were packed: unpack the archive again, and compare its own digest first"
}

found=$("$python" -I -c '
import platform, sys
system = {"Linux": "linux", "Darwin": "macos"}.get(platform.system(), platform.system())
name = {"cpython": "py"}.get(sys.implementation.name, sys.implementation.name)
print("%s-%s-%s%d.%d" % (system, platform.machine(), name, *sys.version_info[:2]))
' 2>/dev/null) || refuse "$python is no Python, or does not run: try $python --version, or name another by --python"
wanted=requirements/$found/$parts.txt
machines=$(cd requirements && printf ', %s' *)
[ -f "$wanted" ] || refuse "$python is $found, and the wheels here are for ${machines#, }: name such a Python by --python \
(/usr/bin/python3.11), or ask whoever made this archive for one that holds yours (make bundle PYTHONS=...)"
case $found in
  linux-*)
    "$python" -I -c '
import platform, sys
name, version = platform.libc_ver()
sys.exit(name != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 28))
' || refuse "the wheels here need glibc 2.28 or newer (Debian 10, RHEL 8, Ubuntu 18.10 and later)"
    ;;
esac

# The folder that is there already, in which all others are made.
above=$(dirname -- "$target")
while [ ! -e "$above" ] && [ ! -h "$above" ]; do above=$(dirname -- "$above"); done
[ -d "$above" ] || refuse "$above is no folder: name a place for the program that can be made"
[ -w "$above" ] || refuse "nothing can be written in $above: run this as a user who may, or name another place"
needed=$(sed -n '1s/^# \([0-9]*\) MB .*/\1/p' "$wanted")
free=$(df -Pk -- "$above" | awk 'NR == 2 { print int($4 / 1024) }')
if [ "${free:-0}" -lt "${needed:-0}" ]; then
  refuse "the program takes $needed MB and $above has $free MB free: make room, or name a folder on another disk"
fi

done=
trap '[ -n "$done" ] || rm -rf "$target"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# Debian's own Python has no pip without `python3-venv`, so pip comes from here, too.
"$python" -I -m venv --without-pip "$target" || refuse "$python made no environment in $target"
set -- wheels/pip-*.whl
# A file that SHA256SUMS does not list was not compared with anything.
if [ $# -ne 1 ] || ! grep -q "  $1\$" SHA256SUMS; then
  refuse "wheels/ holds another pip than was packed: unpack the archive again"
fi
# No configuration of this machine's pip counts: no index, no other wheels, no constraints.
PIP_CONFIG_FILE=/dev/null "$target/bin/python" -I "$1/pip" --isolated --disable-pip-version-check --quiet \
  install --no-index --find-links wheels --no-deps --require-hashes --only-binary :all: --no-cache-dir \
  --requirement "$wanted" || refuse "pip installed nothing: what it says stands above"
"$target/bin/python" -I -m pip --isolated --disable-pip-version-check check >/dev/null ||
  refuse "the packages in $target do not fit each other"
version=$("$target/bin/dphist" --version) || refuse "dphist was installed and does not run"
done=yes
printf '%s is in %s, for %s (%s).\n' "$version" "$target" "$found" "$parts"
printf 'Try it: sh %s/check.sh %s\n' "$here" "$target"
