package sdktest

import "time"

// Hurry makes an Env impatient, and small where size is not the matter.
func (e *Env) Hurry(soon time.Duration) { e.soon, e.pack = soon, 2<<20 }
