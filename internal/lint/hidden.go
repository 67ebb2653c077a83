package lint

import (
	"bytes"
	"regexp"
	"strings"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// hiddenText stands for what is not shown.
const hiddenText = "[hidden]"

// hidden is what config providers gave for a file, of which nothing is shown:
// whoever keeps a value elsewhere does not want it in a log. Values of secret keys
// are in no message in the first place.
type hidden struct {
	titles map[string]string // of codes
	keys   map[string]bool   // as they stand in the file, whose values it is
	texts  *regexp.Regexp    // what of it may come up elsewhere; nil: nothing
}

// newHidden returns what is not to be shown of the entries of a file.
func newHidden(entries []mm2.Setting, data []byte) hidden {
	h := hidden{titles: map[string]string{}, keys: map[string]bool{}}
	for _, c := range Codes() {
		h.titles[c.ID] = c.Title
	}
	var texts []string
	for _, s := range entries {
		if !s.Secret || javaprops.Secret(s.Key) && !s.Provided {
			continue
		}
		h.keys[s.Key] = true
		if !s.Provided {
			continue // nothing was given
		}
		for _, text := range append(s.List(), strings.TrimSpace(s.Value)) {
			// What stands in the file as it is, is no secret; and a text of one or two
			// letters is found in any sentence.
			if len(text) > 2 && !bytes.Contains(data, []byte(text)) {
				texts = append(texts, regexp.QuoteMeta(text))
			}
		}
	}
	if texts != nil {
		h.texts = regexp.MustCompile("(?i)" + strings.Join(texts, "|"))
	}
	return h
}

// speaksOfValues reports whether messages of a code are about the value of their key,
// or may be.
func speaksOfValues(code string) bool {
	switch code {
	case "AP0304", "AP0306": // of references, which stand in the file
		return false
	case "AP0703", "AP0704", "AP0707", "AP0708", "AP0710", "AP0711":
		return true
	}
	return code >= "AP03" && code < "AP07"
}

// in returns a finding as it may be shown.
func (h hidden) in(f Finding) Finding {
	switch {
	case h.keys[f.Key] && speaksOfValues(f.Code):
		f.Message, f.Suggestion = h.titles[f.Code]+"; what it is about came from a config provider, and is not shown", ""
	case f.Code == "AP0601" && h.from(f.Message) != f.Message:
		// Of a sentence with holes in it, as where a provider gave a mechanism's name,
		// nothing is left to be understood.
		f.Message, f.Suggestion = h.titles[f.Code]+": what another key has from a config provider, which is not shown, does not go with this one", ""
	}
	return h.cut(f)
}

// cut returns a finding whose message needs no more care than that.
func (h hidden) cut(f Finding) Finding {
	f.Key, f.Message, f.Suggestion = h.from(f.Key), h.from(f.Message), h.from(f.Suggestion)
	return f
}

// from returns a text without what is hidden.
func (h hidden) from(text string) string {
	if h.texts == nil {
		return text
	}
	return h.texts.ReplaceAllLiteralString(text, hiddenText)
}
