# Guest with the device tree of an Odroid-XU3 (four INA231, two with labels) and the INA3221 of a Jetson.
. ./common.sh
bus 0x40,0x41,0x42,0x44,0x45
insmod /m/ina2xx.ko; insmod /m/ina3221.ko; insmod /m/test_power.ko
# INA231 at ADDRESS mV mA
rail() { reg "$1" 2 $(($2 * 100 / 125)); reg "$1" 4 $(($3 * 4)); reg "$1" 1 $(($3 * 4)); reg "$1" 3 $(($2 * $3 / 6250)); }
rail 0x40 1000 3000; rail 0x41 1200 200; rail 0x44 900 1500; rail 0x45 950 400
# VDD_IN: 10 mV over 5 mOhm = 2 A at 19.2 V; VDD_CPU_GPU_CV: 4 mV = 0.8 A at 19.2 V.
reg 0x42 1 $((250 << 3)); reg 0x42 2 $((2400 << 3)); reg 0x42 3 $((100 << 3)); reg 0x42 4 $((2400 << 3))

section bus; echo "$B"
section sensors; say ./socbfs sensors --json --board ./odroid-xu3.toml
section bench-profile
set_arm() { reg 0x40 3 "$1"; }
# VDD_ARM alternates between 3 W and 1 W; the other three rails of the profile are constant.
vary /tmp/arm 0.5 set_arm 3 480 1 160 & vary=$!
bench /tmp/arm auto --board ./odroid-xu3.toml
kill $vary
section jetson; say ./socbfs energy --energy ina3221 --json - --quiet -- sleep 2
