# Guest with an AMD processor: RAPL with AMD's unit, package and core only.
. ./common.sh
for module in intel_rapl_common; do insmod /m/$module.ko; done
insmod /m/fakerapl.ko uw=12000000,5000000,0,0,0 esu=16
section sensors; say ./socbfs sensors --json
section energy; say ./socbfs energy --json - --quiet -- sleep 6
