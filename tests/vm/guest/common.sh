# Functions for the scripts of all guests. Lines "@@ NAME" divide the output into sections; "@rc N" gives the exit code of a command.

section() { echo; echo "@@ $1"; }
say() { "$@"; echo "@rc $?"; }

# Seconds of CLOCK_MONOTONIC, in steps of 10 ms. (The uptime is the same, since the guest is never suspended.)
now() { read -r up _ </proc/uptime; echo "$up"; }

bus() {
    insmod /m/i2c-dev.ko
    insmod /m/i2c-stub.ko chip_addr="$1"
    for adapter in /sys/bus/i2c/devices/i2c-*; do
        grep -q 'SMBus stub' "$adapter/name" && B=${adapter##*-}
    done
    export B
}
# Sets a 16-bit register: reg ADDRESS REGISTER VALUE. The wire is big endian, SMBus words are little endian.
reg() { i2cset -f -y "$B" "$1" "$2" $((($3 & 255) << 8 | ($3 >> 8 & 255))) w; }
new() { echo "$1" "$2" >/sys/bus/i2c/devices/i2c-"$B"/new_device; }

# Switches a power between two values, and logs each change: vary LOG SECONDS COMMAND WATTS1 ARGUMENT1 WATTS2 ARGUMENT2
vary() {
    while :; do
        "$3" $5; echo "$(now) $4" >>"$1"; sleep "$2"
        "$3" $7; echo "$(now) $6" >>"$1"; sleep "$2"
    done
}

# Runs a benchmark on a small graph, and prints its record as one line of JSON, and the log of the powers set while it ran. $windows: number
# of energy windows [default: 1]. It uses one thread, since two would keep two processors of the host busy.
bench() { # LOG SENSORS ARGUMENT...
    log=$1 sensors=$2
    shift 2
    say ./socbfs bench --kronecker 10 --roots 4 --threads 1 --energy "$sensors" --energy-seconds 6 --energy-repeats "${windows:-1}" --json - --quiet "$@"
    echo "@log"
    cat "$log"
}
