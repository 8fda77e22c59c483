package rpc

// playPlugin is the plugin that this test binary plays.
func playPlugin() {
	Serve(pluginOf(newStore()))
}
