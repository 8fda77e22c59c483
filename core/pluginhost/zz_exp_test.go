package pluginhost
import ("testing";"runtime";"time";"syscall";"fmt";"strings";"os")
func cpu() time.Duration { var u syscall.Rusage; syscall.Getrusage(0,&u); return time.Duration(u.Utime.Nano()+u.Stime.Nano()) }
func TestExpSide(t *testing.T){
 for _, b := range []string{"none","broker","stdio"} {
  opts,_ := testOptions(t)
  opts.Log.SetLevel(3)
  s := open(t, rogueSpec(t,b), opts)
  c := cpu(); time.Sleep(3*time.Second)
  var m runtime.MemStats; runtime.ReadMemStats(&m)
  fmt.Println(b, "cpu of 3s", cpu()-c, "goroutines", runtime.NumGoroutine(), "heap", m.HeapAlloc>>20, "stack", m.StackInuse>>20)
  fmt.Println(put(t.Context(), s, "k"))
  s.Close(t.Context())
 }
}
func TestExpLog(t *testing.T){
 for _, row := range []string{"\\n", "x\\n", strings.Repeat("y",16000)+"\\n", `{"@message":"`+strings.Repeat("z",16000)+`"}\n`, "{"+strings.Repeat(`"a":1,`,2600)+`"b":1}\n`, strings.Repeat("endless",1000)} {
  opts,_ := testOptions(t)
  opts.Log.SetLevel(3)
  spec := testSpec(t,"good")
  f := planted(t,"text", strings.Repeat(strings.ReplaceAll(row,"\\n","\n"), 200), 0o600)
  spec.Path = planted(t, "cairn-plugin-x", "#!/bin/sh\n(while :; do cat "+f+"; done) >&2 &\nexec "+spec.Path+"\n", 0o700)
  spec.Env["PATH"]="/bin:/usr/bin"
  s := open(t, spec, opts)
  c := cpu(); time.Sleep(2*time.Second)
  var m runtime.MemStats; runtime.ReadMemStats(&m)
  fmt.Printf("%.20q cpu of 2s %v heap %d\n", row, cpu()-c, m.HeapAlloc>>20)
  s.Close(t.Context())
 }
}
var _ = os.Getpid
