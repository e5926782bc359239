// An ACPI power meter whose power changes every two seconds of CLOCK_MONOTONIC, which Linux gives as Timer, in units of 100 ns.
DefinitionBlock ("", "SSDT", 2, "SOCBFS", "METER", 1)
{
    Scope (\_SB)
    {
        Device (PMTR)
        {
            Name (_HID, "ACPI000D")
            // It can only measure, in milliwatts, with a new value every 100 ms, a mean over 100 to 1000 ms.
            Name (_PMC, Package () { 1, 0, 0, 100000, 100, 100, 1000, 0, 0, 0, 0, "meter", "1", "none" })
            Name (_GAI, 100)
            Name (_PMD, Package () {})
            Method (_PMM)
            {
                Return (20000 - 10000 * ((Timer / 20000000) & 1))
            }
        }
    }
}
