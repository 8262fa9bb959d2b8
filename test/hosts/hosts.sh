#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several emulated hosts on one machine: runs COMMAND under Open MPI on hosts that share nothing but files and processors.
#
# usage: hosts.sh N RANKS_EACH [--rate RATE] [--beside SCRIPT] COMMAND...
#
#   N                hosts, h1 to hN: each with a name, processes, shared memory and one network link of its own
#   RANKS_EACH       ranks on each of them
#   --rate RATE      of every link in each direction, as tc writes it: 1gbit
#   --beside SCRIPT  bash commands that run meanwhile: "ip link set h2 down" cuts the link of host h2, "kill -KILL $h2"
#                    ends everything that runs there
#
# All hosts live in namespaces that end with this process, however it ends; the machine's own network stays as it is.
# The exit code is that of mpirun, or 77, with the reason, if such hosts cannot be made.
set -euo pipefail

usage() {
  sed -n 's/^# usage/usage/p' "$0" >&2
  exit 2
}

take_arguments() {
  [[ ${1:-} =~ ^[1-9][0-9]?$ && ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
  hosts=$1 ranks_each=$2 rate='' beside=''
  shift 2
  while [[ ${1:-} == --* ]]; do
    case $1 in
      --rate) rate=${2:-} ;;
      --beside) beside=${2:-} ;;
      *) usage ;;
    esac
    shift 2 || usage
  done
  (($# > 0)) || usage
  command=("$@")
}

skip() {
  echo "SKIPPED: $*"
  exit 77
}

# The head and every host have one each of these namespaces.
own=(--mount --net --uts --ipc --pid)

# Runs this script again inside, where process 1 takes all others with it.
enter_namespaces() {
  local tool
  for tool in ip tc nsenter setpriv unshare; do
    command -v $tool > /dev/null || skip "needs $tool (Debian: iproute2, util-linux)"
  done
  [[ $(mpirun --version 2>&1) == *"Open MPI"* ]] || skip "needs the mpirun of Open MPI"
  local -a new=(unshare "${own[@]}" --fork --kill-child=KILL --mount-proc)
  if ((EUID != 0)); then new+=(--user --map-root-user); fi
  "${new[@]}" ip link add type veth 2> /dev/null || skip "needs the right to make network namespaces and links"
  HOSTS_INSIDE=1 setpriv --pdeathsig KILL "${new[@]}" bash "$0" "$@" <&0 &
  trap 'kill -KILL $!' HUP INT TERM
  local status=0
  wait $! || status=$?
  exit $status
}

# limit LINK [COMMAND...]: limits the rate of a link; COMMAND enters its host. Nothing is dropped, as on the fabric of a
# cluster.
limit() {
  if [[ -n $rate ]]; then "${@:2}" tc qdisc add dev "$1" root tbf rate "$rate" burst 128kb latency 1s; fi
}

# make_host K: makes host K, whose first process is $hK and first[hK].
declare -A first
keepers=()
make_host() {
  local name=h$1 process=''
  # Its daemon looks for the agent without using it.
  unshare "${own[@]}" --fork --kill-child=KILL --mount-proc bash -c "
    hostname $name; mount -t tmpfs tmpfs /dev/shm; ln -s /bin/false /dev/shm/agent; exec sleep infinity" &
  keepers+=($!)
  disown
  until [[ -n $process && -L /proc/$process/root/dev/shm/agent ]]; do
    sleep 0.01
    read -r process < /proc/$!/task/$!/children || true
  done
  declare -g "$name=$process"
  first[$name]=$process
  local -a inside=(nsenter --target "$process" --net)
  ip link add "$name" type veth peer name eth0 netns "$process"
  ip link set "$name" master eth0 up
  "${inside[@]}" ip address add "10.0.0.$1/24" dev eth0
  # Reno shares a link that is full both ways; BBR, the default of some machines, leaves a tenth of it idle.
  "${inside[@]}" sh -c 'ip link set lo up; echo reno > /proc/sys/net/ipv4/tcp_congestion_control'
  "${inside[@]}" ip link set eth0 up
  limit "$name"
  limit eth0 "${inside[@]}"
}

# mpirun runs on the head, where a bridge joins all links. It writes into the head's /dev/shm.
make_head() {
  mount -t tmpfs tmpfs /dev/shm
  hostname head
  ip link set lo up
  ip link add eth0 type bridge
  ip address add 10.0.0.254/24 dev eth0
  ip link set eth0 up
  {
    echo 127.0.0.1 localhost
    for ((host = 1; host <= hosts; ++host)); do echo "10.0.0.$host h$host"; done
  } > /dev/shm/hosts
  mount --bind /dev/shm/hosts /etc/hosts
}

# mpirun calls this in place of ssh: agent HOST COMMAND...
make_agent() {
  {
    echo '#!/bin/bash'
    declare -p first own
    # shellcheck disable=SC2016 # expanded there
    echo 'exec nsenter --target "${first[$1]}" "${own[@]}" sh -c "${*:2}"'
  } > /dev/shm/agent
  chmod +x /dev/shm/agent
}

# Open MPI gives up a host that vanishes after 4 s. By default it takes longer than our watchdog, and mpirun then waits
# much longer.
launch() {
  local -a options=(--host "$(seq -s, -f "h%g:$ranks_each" "$hosts")" --bind-to none
    --mca plm_rsh_agent /dev/shm/agent --mca plm_rsh_no_tree_spawn 1 --mca orte_tmpdir_base /dev/shm
    --mca oob_tcp_if_include eth0 --mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 1
    --mca oob_tcp_keepalive_probes 2 --mca btl "self,vader,tcp" --mca btl_tcp_if_include eth0)
  if ((EUID == 0)); then options+=(--allow-run-as-root); fi
  if [[ -n $beside ]]; then (eval "$beside") & fi
  # The agent may have begun before mpirun makes it a group, which it warns of.
  mpirun "${options[@]}" "${command[@]}" 2> >(grep --line-buffered -v 'Warning: setpgid' >&2) || status=$?
  local filter=$!
  kill -KILL "${keepers[@]}" 2> /dev/null || true
  wait $filter || true
}

take_arguments "$@"
if [[ -z ${HOSTS_INSIDE:-} ]]; then enter_namespaces "$@"; fi
unset HOSTS_INSIDE
make_head
for ((host = 1; host <= hosts; ++host)); do make_host "$host"; done
make_agent
status=0
launch
exit $status
