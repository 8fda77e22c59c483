package pb_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cairnsync/cairn/sdk/internal/pb"
	"github.com/cairnsync/cairn/sdk/rpc"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sections are the parts of the protocol's document, each from its heading to the next.
func sections(t *testing.T) []string {
	t.Helper()
	return regexp.MustCompile(`(?m)^##+ `).Split(read(t, "../../../docs/protocol.md"), -1)
}

// names tells whether a section speaks of a word, as the word it is.
func names(section, word string) bool {
	return regexp.MustCompile(`\b` + word + `\b`).MatchString(section)
}

func TestTheDocumentHasASectionForEachCallWithItsMessages(t *testing.T) {
	methods := pb.File_target_proto.Services().ByName("Target").Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		stream := ""
		if m.IsStreamingServer() {
			stream = "stream "
		}
		heading := fmt.Sprintf("%s (%s) → %s%s\n", m.Name(), m.Input().Name(), stream, m.Output().Name())
		found := false
		for _, section := range sections(t) {
			found = found || strings.HasPrefix(section, heading)
		}
		if !found {
			t.Errorf("docs/protocol.md has no section %q", "### "+heading)
		}
	}
}

func TestTheDocumentNamesEachFieldWhereItSpeaksOfItsMessage(t *testing.T) {
	messages := pb.File_target_proto.Messages()
	for i := range messages.Len() {
		message := messages.Get(i)
		if missing := undescribed(sections(t), message); missing != "" {
			t.Errorf("docs/protocol.md has no section that speaks of %s and names its field `%s`", message.Name(), missing)
		}
	}
}

// undescribed is "" when some section speaks of the message and names each of its fields, else a field that is missing.
func undescribed(sections []string, message protoreflect.MessageDescriptor) string {
	missing := "(none: the message itself is missing)"
	for _, section := range sections {
		if !names(section, string(message.Name())) {
			continue
		}
		if missing = firstMissing(section, message.Fields()); missing == "" {
			return ""
		}
	}
	return missing
}

func firstMissing(section string, fields protoreflect.FieldDescriptors) string {
	for i := range fields.Len() {
		if name := string(fields.Get(i).Name()); !strings.Contains(section, "`"+name+"`") {
			return name
		}
	}
	return ""
}

func TestTheDocumentGivesEachValueOfAnEnumItsNumber(t *testing.T) {
	text := strings.Join(sections(t), "")
	enums := pb.File_target_proto.Enums()
	for i := range enums.Len() {
		values := enums.Get(i).Values()
		for j := range values.Len() {
			if v := values.Get(j); !strings.Contains(text, fmt.Sprintf("`%s` = %d", v.Name(), v.Number())) {
				t.Errorf("docs/protocol.md does not say `%s` = %d", v.Name(), v.Number())
			}
		}
	}
}

func TestTheDocumentHasTheHandshakeOfTheCode(t *testing.T) {
	text := strings.Join(sections(t), "")
	handshake := rpc.Handshake()
	for _, want := range []string{
		"`" + handshake.MagicCookieKey + "`", "`" + handshake.MagicCookieValue + "`",
		fmt.Sprintf("major version %d\n", handshake.ProtocolVersion), "`" + string(pb.File_target_proto.Package()) + ".Target`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/protocol.md does not hold %q", want)
		}
	}
}

func TestTheExampleInAnotherLanguageHasTheProtocolAsItIs(t *testing.T) {
	const copied = "../../../examples/plugin-node/target.proto"
	if !bytes.Equal([]byte(read(t, copied)), []byte(read(t, "target.proto"))) {
		t.Errorf("%s is another than target.proto: copy it again", copied)
	}
}
