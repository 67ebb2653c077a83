package javaprops_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"apograph/internal/javaprops"
)

// goldenFile holds files and what java.util.Properties made of them: two lines
// each, as testdata/Golden.java reads and writes them. APOGRAPH_GOLDEN_JAVA=1
// makes it anew; that needs Java 17 or later.
const goldenFile = "testdata/golden.txt"

const goldenFiles = 1000

// pieces are what files are made of, by how often: what means something to the
// format, and a little that does not.
var pieces = strings.Split("a|b|key|topics|A->B|orders|=|=|:| | |\t|\f|\n|\n|\n|\r|\r\n|\\|\\|\\\\|\\\n|\\\n|\\\r\n|\\\r|#|!|#c\n|\n !x\n|\\u0041|\\u00e4|\\u0020|\\u005c|\\uD83D\\uDE00|\\uD83D|\\uDE00|\\u00|\\uXYZW|\\t|\\n|\\r|\\f|\\=|\\:|\\ |\\#|\\.|\\q|.|,|\xc3\xa4|\xe4|\x00|\x85|\u2028|\U0001F600|\xef\xbb\xbf|\v|\x7f", "|")

// generated returns the n-th file. Every fourth is read as UTF-8.
func generated(r *rand.Rand, n int) (data []byte, asUTF8 bool) {
	asUTF8 = n%4 == 3
	var b bytes.Buffer
	for range 1 + r.Intn(24) {
		piece := pieces[r.Intn(len(pieces))]
		if strings.HasPrefix(piece, `\u`) && r.Intn(2) == 0 {
			piece = "k=" // malformed escapes would end most files
		}
		if asUTF8 && (piece == "\xe4" || piece == "\x85") && r.Intn(4) > 0 {
			piece = "v"
		}
		b.WriteString(piece)
	}
	return b.Bytes(), asUTF8
}

func TestParseAgainstJava(t *testing.T) {
	if os.Getenv("APOGRAPH_GOLDEN_JAVA") != "" {
		writeGolden(t)
	}
	golden, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n")
	if len(lines) != 2*goldenFiles {
		t.Fatalf("%s has %d lines, want %d", goldenFile, len(lines), 2*goldenFiles)
	}
	refused := 0
	for i := 0; i < len(lines); i += 2 {
		data, err := hex.DecodeString(lines[i][1:])
		if err != nil {
			t.Fatal(err)
		}
		if got := puts(data, lines[i][0] == 'U'); got != lines[i+1] {
			t.Errorf("line %d: %q\n got %s\nwant %s", i+1, data, got, lines[i+1])
		}
		if lines[i+1] == "error" {
			refused++
		}
	}
	if refused == 0 || refused > goldenFiles/2 {
		t.Errorf("%d of %d files are refused", refused, goldenFiles)
	}
}

// puts returns what was parsed in the words of Golden.java.
func puts(data []byte, asUTF8 bool) string {
	parse := javaprops.Parse
	if asUTF8 {
		parse = javaprops.ParseUTF8
	}
	f, err := parse("x", data)
	if err != nil {
		return "error"
	}
	all := make([]string, len(f.Entries))
	for i, e := range f.Entries {
		all[i] = fmt.Sprintf("%x=%x", e.Key, e.Value)
	}
	return strings.Join(all, " ")
}

func writeGolden(t *testing.T) {
	t.Helper()
	var in bytes.Buffer
	r := rand.New(rand.NewSource(7))
	for n := range goldenFiles {
		data, asUTF8 := generated(r, n)
		mark := "L"
		if asUTF8 {
			mark = "U"
		}
		fmt.Fprintf(&in, "%s%x\n", mark, data)
	}
	java := exec.Command("java", "testdata/Golden.java")
	java.Stdin, java.Stderr = bytes.NewReader(in.Bytes()), os.Stderr
	answers, err := java.Output()
	if err != nil {
		t.Fatalf("java: %v", err)
	}
	files := strings.Split(in.String(), "\n")
	var out strings.Builder
	for i, answer := range strings.Split(strings.TrimSuffix(string(answers), "\n"), "\n") {
		fmt.Fprintf(&out, "%s\n%s\n", files[i], answer)
	}
	if err := os.WriteFile(goldenFile, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
