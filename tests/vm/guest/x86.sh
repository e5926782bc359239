# Guest with an Intel processor: RAPL, one INA chip of each kind, a battery.
. ./common.sh
bus 0x40,0x41,0x44,0x45,0x46
for module in ina2xx ina238 ina3221 test_power intel_rapl_common acpi_power_meter; do insmod /m/$module.ko; done
# The registers of all domains begin 64 J before their wrap; psys exists and never changes.
rapl() { insmod /m/fakerapl.ko uw="$1" raw0=0xfff00000; }
rapl 20000000,9000000,3000000,1500000,0
set_rapl() { echo "$1" >/sys/module/fakerapl/parameters/uw; }

# INA226, 10 mOhm: current 250 uA, power 6.25 mW a count; 12 V x 1.5 A = 18 W. INA219: 18 W as well. INA231: 1 W.
new ina226 0x40; reg 0x40 1 6000; reg 0x40 2 9600; reg 0x40 3 2880; reg 0x40 4 6000
new ina219 0x44; reg 0x44 1 1500; reg 0x44 2 $((1500 << 3)); reg 0x44 3 900; reg 0x44 4 1500
new ina231 0x45; reg 0x45 1 3000; reg 0x45 2 800; reg 0x45 3 160; reg 0x45 4 3000
# INA238, 10 mOhm: power 0.4 mW a count, in three registers of a byte as i2c-stub reads a block: 17.92 W.
new ina238 0x46; i2cset -f -y "$B" 0x46 8 0 w; i2cset -f -y "$B" 0x46 10 0 w
set_ina238() { i2cset -f -y "$B" 0x46 9 "$1" w; }
set_ina238 175
# INA3221: shunt in 40 uV, bus in 8 mV, both from bit 3; 10 mOhm: 10 mV = 1 A at 5 V, 4 mV = 0.4 A at 3.296 V, 2 mV = 0.2 A at 1.8 V.
new ina3221 0x41
reg 0x41 1 $((250 << 3)); reg 0x41 2 $((625 << 3)); reg 0x41 3 $((100 << 3)); reg 0x41 4 $((412 << 3)); reg 0x41 5 $((50 << 3)); reg 0x41 6 $((225 << 3))
echo 0 >"$(dirname /sys/bus/i2c/devices/"$B"-0041/hwmon/hwmon*/in3_enable)"/in3_enable
# The driver documents milliampere and millivolt, but takes micro: a battery of 1.6 A at 3.8 V, with a negative current.
echo -1600000 >/sys/module/test_power/parameters/battery_current
echo 3800000 >/sys/module/test_power/parameters/battery_voltage
echo discharging >/sys/module/test_power/parameters/battery_status

section bus; echo "$B"
section sensors; say ./socbfs sensors --json
section sensors-of-a-user; say su -s /bin/sh -c "./socbfs sensors --json" nobody
section bench-of-a-user; say su -s /bin/sh -c "./socbfs bench --kronecker 6 --roots 1 --simd scalar --quiet" nobody
# Does what udev does with a counter by the rule of the package. Then members of the group can read it, and other users can't.
section cure
echo 'socbfs-power:x:990:member' >/etc/group
echo 'member:x:1000:1000::/:/bin/sh' >>/etc/passwd
for counter in /sys/class/powercap/intel-rapl*/energy_uj; do
    path=$(readlink -f "${counter%/*}")
    grep '^SUBSYSTEM=="powercap"' 70-socbfs-power.rules | grep -o 'RUN+="[^"]*"' | cut -d'"' -f2 | sed "s|%p|${path#/sys}|" | sh
    stat -c "@mode %a %g" "$counter"
done
say su -s /bin/sh -c "./socbfs sensors --json" member
section still-closed
say su -s /bin/sh -c "./socbfs sensors --json" nobody

# QEMU 7.2 emulates AVX2 wrongly (a search with it fails validation there, and on no processor), so it is not used.
section bench-rapl
# The counter begins 495 J before its wrap: at 15 W it wraps after 33 s, which is in one of six windows of 6 s wherever the first begins
# before that. It begins after 4 to 8 s, and if the machine is busy after more than 19 s.
rmmod fakerapl
insmod /m/fakerapl.ko uw=20000000,9000000,3000000,0,0 raw0=0xff844000
vary /tmp/rapl 1 set_rapl 20 20000000,9000000,3000000,0,0 10 10000000,4000000,1000000,0,0 & vary=$!
windows=6
bench /tmp/rapl powercap:package-0 --simd scalar
windows=1
kill $vary

section bench-ina226
set_ina226() { reg 0x40 3 "$1"; }
vary /tmp/ina226 0.5 set_ina226 18 2880 6 960 & vary=$!
bench /tmp/ina226 ina2xx:"$B"-0040 --simd scalar
kill $vary

section ina238
vary /tmp/ina238 0.5 set_ina238 17.92 175 6.0416 59 & vary=$!
say ./socbfs energy --energy ina2xx:"$B"-0046 --json - --quiet -- sleep 7
kill $vary
echo "@log"; cat /tmp/ina238
set_ina238 175

# The meter changes its power by the clock.
section acpi-power-meter
say ./socbfs energy --energy acpi-power-meter --json - --quiet -- sleep 9
echo "@log"
read -r up _ </proc/uptime
at=0
while [ $at -le "${up%.*}" ]; do echo "$at 20"; echo "$((at + 2)) 10"; at=$((at + 4)); done

section battery
set_battery() { echo "$1" >/sys/module/test_power/parameters/battery_current; }
vary /tmp/battery 2 set_battery 6.08 -1600000 3.04 -800000 & vary=$!
say ./socbfs energy --energy power-supply --json - --quiet -- sleep 7
kill $vary
echo "@log"; cat /tmp/battery
section charging
echo charging >/sys/module/test_power/parameters/battery_status
say ./socbfs energy --energy power-supply -- true

section all-rails
reg 0x40 3 2880
say ./socbfs energy --energy ina2xx,ina3221 --json - --quiet -- sleep 2
section vanishes
say ./socbfs energy --energy powercap:package-0 --json - --quiet -- sh -c "sleep 1; rmmod fakerapl; sleep 1"
section vanishes-ina
say ./socbfs energy --energy ina2xx:"$B"-0040 --json - --quiet -- sh -c "sleep 1; echo 0x40 > /sys/bus/i2c/devices/i2c-$B/delete_device; sleep 1"
