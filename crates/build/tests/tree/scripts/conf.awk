# olddefconfig in small: awk -f conf.awk Kconfig .config
NR == FNR && $1 == "config" { name = $2; names[++count] = name; next }
NR == FNR && $1 == "def_bool" { fixed[name] = 1; next }
NR == FNR && $1 == "depends" { sub(/^[ \t]*depends on /, ""); gsub(/ /, ""); needs[name] = $0; next }
NR == FNR { next }
/^CONFIG_[A-Z0-9_]+=y$/ { sub(/^CONFIG_/, ""); sub(/=y$/, ""); wanted[$0] = 1 }
/^# CONFIG_[A-Z0-9_]+ is not set$/ { wanted[substr($2, 8)] = 0 }
END {
    print "# Linux/x86 6.1.0 Kernel Configuration"
    for (n = 1; n <= count; n++) {
        name = names[n]
        on = fixed[name] || wanted[name]
        parts = split(needs[name], need, "&&")
        for (p = 1; p <= parts; p++) if (!(need[p] in value) || !value[need[p]]) on = 0
        value[name] = on
        if (on) print "CONFIG_" name "=y"
        else if (!parts || on) print "# CONFIG_" name " is not set"
    }
}
