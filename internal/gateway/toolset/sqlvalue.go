package toolset

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// OIDs of types that JSON has something for.
const (
	oidBool        = 16
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidJSON        = 114
	oidFloat4      = 700
	oidFloat8      = 701
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidNumeric     = 1700
	oidJSONB       = 3802
)

// elements are the types of the elements of arrays that JSON has something for; the elements of others are texts.
var elements = map[uint32]uint32{
	1000: oidBool, 1005: oidInt2, 1007: oidInt4, 1016: oidInt8, 1021: oidFloat4, 1022: oidFloat8, 1231: oidNumeric,
	199: oidJSON, 3807: oidJSONB, 1115: oidTimestamp, 1185: oidTimestampTZ,
	1009: 25, 1015: 1043, 1014: 1042, 1182: 1082, 2951: 2950, 1041: 869, 1183: 1083, 1187: 1186, 1002: 18, 1003: 19,
}

// encodeParam writes an argument in the text format of its type: what is bound is a value, whatever is in it.
func encodeParam(name string, oid uint32, value json.RawMessage) ([]byte, error) {
	switch {
	case value == nil:
		return nil, nil
	case oid == oidJSON || oid == oidJSONB:
		return value, nil
	case wire.IsArray(value):
		return appendArray(nil, name, elements[oid], value)
	}
	text, err := paramText(name, value)
	return []byte(text), err
}

func paramText(name string, value json.RawMessage) (string, error) {
	if wire.IsObject(value) {
		return string(value), nil
	}
	text, err := scalar(name, value)
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(text, 0) {
		return "", refuse(name, "must have no NUL character, which PostgreSQL cannot hold")
	}
	if !wire.IsText(value) && strings.ContainsAny(text, ".eE") {
		// 1.0 and 1e3 are integers in JSON, but not in SQL.
		if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return strconv.FormatFloat(f, 'f', -1, 64), nil
		}
	}
	return text, nil
}

// appendArray writes an array (PostgreSQL, section 8.15.6).
func appendArray(out []byte, name string, element uint32, list json.RawMessage) ([]byte, error) {
	out = append(out, '{')
	first := true
	for value := range wire.Elements(list) {
		if !first {
			out = append(out, ',')
		}
		first = false
		var err error
		isJSON := element == oidJSON || element == oidJSONB
		switch {
		case string(value) == "null":
			out = append(out, "NULL"...)
		case isJSON:
			out = appendQuoted(out, string(value))
		case wire.IsArray(value):
			out, err = appendArray(out, name, element, value)
		default:
			var text string
			text, err = paramText(name, value)
			out = appendQuoted(out, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendQuoted(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return append(out, '"')
}

// appendValue writes a value that the server sent in text format as JSON. Numbers that a float64 does not hold exactly become
// strings, since readers of JSON would change them.
func appendValue(out []byte, oid uint32, value []byte) []byte {
	if value == nil {
		return append(out, "null"...)
	}
	text := string(value)
	switch oid {
	case oidBool:
		return strconv.AppendBool(out, text == "t")
	case oidInt2, oidInt4, oidInt8, oidFloat4, oidFloat8, oidNumeric:
		if isExact(text) {
			return append(out, text...)
		}
	case oidJSON, oidJSONB:
		if raw, err := wire.Check(value, wire.Limits{Bytes: len(value) + 1}); err == nil {
			return append(out, compact(raw)...)
		}
	case oidTimestamp, oidTimestampTZ:
		return append(out, wire.Quote(timestamp(text))...)
	}
	if element, ok := elements[oid]; ok {
		p := arrayReader{text: text, element: element}
		if array, ok := p.read(nil); ok {
			return append(out, array...)
		}
	}
	return append(out, wire.Quote(strings.ToValidUTF8(text, "\uFFFD"))...)
}

// isExact says whether readers of JSON, to whom a number is a float64, keep this one: it is an integer within 2^53, it has at most 15
// significant digits, or it is how a float64 is written.
func isExact(text string) bool {
	const largest = 1 << 53
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return -largest <= n && n <= largest
	}
	mantissa, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), "e")
	digits := strings.TrimLeft(strings.Replace(mantissa, ".", "", 1), "0")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(digits, "0123456789") != "" { // NaN and the infinities among them
		return false
	}
	return len(digits) <= 15 || strconv.FormatFloat(f, 'f', -1, 64) == text || strconv.FormatFloat(f, 'e', -1, 64) == text
}

// timestamp makes RFC 3339 of PostgreSQL's ISO style in UTC.
func timestamp(text string) string {
	date, clock, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(clock, " ") { // infinity, BC
		return text
	}
	if local, isUTC := strings.CutSuffix(clock, "+00"); isUTC {
		clock = local + "Z"
	}
	return date + "T" + clock
}

// arrayReader makes JSON of an array's text.
type arrayReader struct {
	text    string
	at      int
	depth   int // of the array that is read
	element uint32
}

// maxDimensions is how many an array can have (MAXDIM of PostgreSQL).
const maxDimensions = 6

// read takes one array, and returns false where the text is none.
func (r *arrayReader) read(out []byte) ([]byte, bool) {
	if r.at == 0 && strings.HasPrefix(r.text, "[") { // bounds that do not begin at 1
		r.at = strings.IndexByte(r.text, '=') + 1
	}
	if r.peek() != '{' || r.depth == maxDimensions {
		return nil, false
	}
	r.depth++
	defer func() { r.depth-- }()
	r.at++
	out = append(out, '[')
	for first := true; r.peek() != '}'; first = false {
		if !first {
			if r.peek() != ',' {
				return nil, false
			}
			r.at++
			out = append(out, ',')
		}
		var ok bool
		if r.peek() == '{' {
			out, ok = r.read(out)
		} else {
			out, ok = r.value(out)
		}
		if !ok {
			return nil, false
		}
	}
	r.at++
	return append(out, ']'), true
}

func (r *arrayReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *arrayReader) value(out []byte) ([]byte, bool) {
	if r.peek() != '"' {
		end := strings.IndexAny(r.text[r.at:], ",}")
		if end <= 0 {
			return nil, false
		}
		word := r.text[r.at : r.at+end]
		r.at += end
		if word == "NULL" {
			return append(out, "null"...), true
		}
		return appendValue(out, r.element, []byte(word)), true
	}
	var text []byte
	for r.at++; r.peek() != '"'; r.at++ {
		if r.peek() == '\\' {
			r.at++
		}
		if r.at >= len(r.text) {
			return nil, false
		}
		text = append(text, r.text[r.at])
	}
	r.at++
	if text == nil {
		text = []byte{}
	}
	return appendValue(out, r.element, text), true
}
