package pluginhost

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// secretsOf are the texts that must not be seen in what the plugin of a target says: the secret attributes of its configuration, and what its
// environment may hold of that kind.
func secretsOf(spec Spec) []string {
	secrets := append([]string(nil), spec.Secrets...)
	for name, value := range spec.Env {
		if password, ok := passwordIn(value); ok {
			secrets = append(secrets, password)
			continue
		}
		if !plainSetting(name, value) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// passwordIn is the password of a URL such as a proxy's; the rest of the URL is worth reading in a log.
func passwordIn(value string) (string, bool) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.User == nil {
		return "", false
	}
	password, ok := u.User.Password()
	return password, ok
}

// plainSetting tells an environment variable that is no secret. Nobody marks the secret ones, so it is the others that must look the part: a short
// word, a number, an absolute path, a URL without credentials, and no name that announces a secret.
func plainSetting(name, value string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"KEY", "SECRET", "TOKEN", "PASS", "PWD", "CRED", "AUTH", "SIGNATURE", "CONNECTION"} {
		if strings.Contains(upper, word) {
			return filepath.IsAbs(value) && strings.Contains(upper, "FILE") // the name of a file that holds it
		}
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil || len(value) < minEncoded || filepath.IsAbs(value) {
		return true
	}
	u, err := url.Parse(value)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == ""
}
