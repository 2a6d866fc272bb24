#!/usr/bin/env bash
# Fails if the work tree differs from the index, or holds files git does not know.
# After `make generate` on committed (or staged) work, a difference means that
# somebody forgot to regenerate, or edited a generated file by hand.
set -euo pipefail
cd "$(dirname "$0")/.."

changed=$(git diff --name-only; git ls-files --others --exclude-standard)
if [[ -z $changed ]]; then
	exit 0
fi
git --no-pager diff --stat
{
	echo "These files differ from what is committed or staged:"
	sed 's/^/  /' <<<"$changed"
	echo "If they are generated: commit the new version. If they are your own work in progress: git add them first."
} >&2
exit 1
