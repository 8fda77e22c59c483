package config

import "fmt"

// checked tells that a plugin may run under the host's policy.
func checked(host Host, p Plugin) bool { return !host.RequireChecksums || p.Checksum != "" && !p.Dev }

// refuseDev reports a plugin block that asks for what the host block forbids.
func (s section) refuseDev(host Host, p Plugin) {
	if host.RequireChecksums && p.Dev {
		s.fault(s.where("dev"), "dev = true under require_checksums", "Remove dev and set the checksum, or remove require_checksums from the host block while you develop.")
	}
}

// missingChecksum reports a target whose plugin may not run, with the line that is wanted.
func (s section) missingChecksum(p Plugin) {
	if p.Checksum != "" {
		return // then dev is the fault, and told where it stands
	}
	remedy := fmt.Sprintf("Put into its plugin block the checksum that its publisher names; `cairn plugin hash %s` prints that of the file.", p.Path)
	if s.opts.Hash != nil {
		if sum, err := s.opts.Hash(p.Path); err == nil {
			remedy = fmt.Sprintf("If you trust the file %s as it is now, put this line into the block plugin %q: checksum = %q", p.Path, p.Name, sum)
		} else {
			remedy = fmt.Sprintf("Install the plugin; then `cairn config check --config FILE` gives the line to add. Now: %v", err)
		}
	}
	s.fault(s.where("plugin"), fmt.Sprintf("plugin %q has no checksum, and the host block says require_checksums", p.Name), remedy)
}
