package sqlcircuit
const crashDirEnv = "CAIRN_SQLCIRCUIT_CRASH_DIR"
func crashChild(string) int { return 0 }
