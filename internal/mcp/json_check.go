package mcp

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// Why a text is refused as JSON. encoding/json is not used for what servers
// send: it matches keys without regard to case, takes the last of two equal
// keys, mends bad UTF-8, and its memory is a multiple of the text.
var (
	errNotJSON      = errors.New("not valid JSON")
	errTooDeep      = errors.New("JSON nested too deep")
	errManyMembers  = errors.New("JSON object with too many members")
	errDuplicateKey = errors.New("JSON object with the same key twice")
	errBudget       = errors.New("JSON too large for its depth")
	errNotRPC       = errors.New("not a JSON-RPC 2.0 message")
)

// parseJSON checks that data is exactly one JSON value by RFC 8259, valid
// UTF-8, within the limits, with numbers a float64 can hold. It does not copy.
func parseJSON(data []byte, limits Limits) (jsonValue, error) {
	if !utf8.Valid(data) {
		return nil, errNotJSON
	}
	c := jsonChecker{data: data, maxDepth: limits.Depth, maxMembers: limits.Members}
	start := skipSpace(data, 0)
	end, err := c.value(start, 0)
	if err != nil {
		return nil, err
	}
	if skipSpace(data, end) != len(data) {
		return nil, errNotJSON
	}
	return jsonValue(data[start:end]), nil
}

// jsonChecker walks over text that may be anything. Each method takes an offset
// and returns the one after what it checked.
type jsonChecker struct {
	data                 []byte
	maxDepth, maxMembers int
}

func (c *jsonChecker) value(i, depth int) (int, error) {
	if i >= len(c.data) {
		return 0, errNotJSON
	}
	switch c.data[i] {
	case '{', '[':
		if depth >= c.maxDepth {
			return 0, errTooDeep
		}
		return c.container(i, depth+1)
	case '"':
		return c.text(i)
	case 't':
		return c.word(i, "true")
	case 'f':
		return c.word(i, "false")
	case 'n':
		return c.word(i, "null")
	default:
		return c.number(i)
	}
}

func (c *jsonChecker) container(i, depth int) (int, error) {
	object := c.data[i] == '{'
	last := byte(']')
	if object {
		last = '}'
	}
	i = skipSpace(c.data, i+1)
	if i < len(c.data) && c.data[i] == last {
		return i + 1, nil
	}
	var err error
	for members := 1; ; members++ {
		if object {
			if members > c.maxMembers {
				return 0, errManyMembers
			}
			if i, err = c.key(i); err != nil {
				return 0, err
			}
		}
		if i, err = c.value(i, depth); err != nil {
			return 0, err
		}
		i = skipSpace(c.data, i)
		if i >= len(c.data) {
			return 0, errNotJSON
		}
		if c.data[i] == last {
			return i + 1, nil
		}
		if c.data[i] != ',' {
			return 0, errNotJSON
		}
		i = skipSpace(c.data, i+1)
	}
}

// key checks a key and the colon after it.
func (c *jsonChecker) key(i int) (int, error) {
	if i >= len(c.data) || c.data[i] != '"' {
		return 0, errNotJSON
	}
	i, err := c.text(i)
	if err != nil {
		return 0, err
	}
	i = skipSpace(c.data, i)
	if i >= len(c.data) || c.data[i] != ':' {
		return 0, errNotJSON
	}
	return skipSpace(c.data, i+1), nil
}

func (c *jsonChecker) word(i int, word string) (int, error) {
	end := i + len(word)
	if end > len(c.data) || string(c.data[i:end]) != word {
		return 0, errNotJSON
	}
	return end, nil
}

func (c *jsonChecker) text(i int) (int, error) {
	for i++; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			return i + 1, nil
		case b < 0x20:
			return 0, errNotJSON
		case b == '\\':
			n := escapeLength(c.data[i:])
			if n == 0 {
				return 0, errNotJSON
			}
			i += n - 1
		}
	}
	return 0, errNotJSON
}

// escapeLength returns the length of the escape s begins with, or 0.
func escapeLength(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < 6 {
			return 0
		}
		for _, b := range s[2:6] {
			if hexDigit(b) < 0 {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (c *jsonChecker) number(start int) (int, error) {
	i := start
	if i < len(c.data) && c.data[i] == '-' {
		i++
	}
	if i < len(c.data) && c.data[i] == '0' {
		i++
	} else if i = c.digits(i); i < 0 {
		return 0, errNotJSON
	}
	if i < len(c.data) && c.data[i] == '.' {
		if i = c.digits(i + 1); i < 0 {
			return 0, errNotJSON
		}
	}
	if i < len(c.data) && (c.data[i] == 'e' || c.data[i] == 'E') {
		i++
		if i < len(c.data) && (c.data[i] == '+' || c.data[i] == '-') {
			i++
		}
		if i = c.digits(i); i < 0 {
			return 0, errNotJSON
		}
	}
	return i, checkMagnitude(c.data[start:i])
}

// digits returns the offset after at least one digit, or -1.
func (c *jsonChecker) digits(i int) int {
	start := i
	for i < len(c.data) && c.data[i] >= '0' && c.data[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// maxNumberBytes is more than any number needs that a float64 can hold to its
// last digit.
const maxNumberBytes = 1100

func checkMagnitude(number []byte) error {
	if len(number) < 20 && !hasExponent(number) {
		return nil
	}
	if len(number) > maxNumberBytes {
		return errNotJSON
	}
	if _, err := strconv.ParseFloat(string(number), 64); err != nil {
		return errNotJSON
	}
	return nil
}

func hasExponent(number []byte) bool {
	for _, b := range number {
		if b == 'e' || b == 'E' {
			return true
		}
	}
	return false
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}
