#!/usr/bin/env bash
# Runs buf lint over the wire schema; buf.yaml has the rules. Exit code 77: there is no buf.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ! -x build/tools/buf ]]; then
  echo "SKIPPED: no buf (./dev setup)"
  exit 77
fi
build/tools/buf lint
