package route

import "strings"

// hasSecond says whether a text is more than one SQL statement, which PostgreSQL prepares as one at most. It looks for a semicolon with
// something before and something behind it. Where a text cannot be told apart for certain, it says no, and the database decides: the
// meaning of a backslash in a string depends on the server's settings, and a semicolon in parentheses belongs to a rule.
func hasSecond(sql string) bool {
	const blanks = " \t\r\n\f\v"
	some, ended := false, false // something has come, and a semicolon behind it
	depth := 0                  // of parentheses
	for sql != "" {
		rest := strings.TrimLeft(sql, blanks)
		switch {
		case rest == "":
			return false
		case rest[0] == ';' && depth != 0:
			return false
		case rest[0] == ';':
			ended, sql = some, rest[1:]
			continue
		case strings.HasPrefix(rest, "--"):
			_, sql = lineOf(rest)
			continue
		case strings.HasPrefix(rest, "/*"):
			end := endOfComment(rest)
			if end < 0 {
				return false
			}
			sql = rest[end:]
			continue
		case ended:
			return true
		case rest[0] == '(':
			depth++
		case rest[0] == ')':
			depth--
		}
		end := endOfToken(rest)
		if end < 0 {
			return false
		}
		some, sql = true, rest[end:]
	}
	return false
}

// lineOf is the first line of a text, and what is behind it.
func lineOf(text string) (first, rest string) {
	end := strings.IndexAny(text, "\r\n")
	if end < 0 {
		return text, ""
	}
	return text[:end], text[end+1:]
}

// endOfComment is where a comment ends, which may hold others; -1 if it does not end.
func endOfComment(sql string) int {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}

// endOfToken is where the token ends that a text begins with: a word, a quoted text, or a character. It is -1 for what is not certain.
func endOfToken(sql string) int {
	switch first := sql[0]; {
	case first == '\'', first == '"':
		end := strings.IndexByte(sql[1:], first) // a doubled quote makes another token of the kind
		if end < 0 || first == '\'' && strings.Contains(sql[:end+2], `\`) {
			return -1
		}
		return end + 2
	case first == '$':
		return endOfDollars(sql)
	case isWord(first):
		end := 1
		for end < len(sql) && (isWord(sql[end]) || sql[end] == '$') {
			end++
		}
		return end
	}
	return 1
}

// endOfDollars is where a text ends that is quoted with dollars, or a parameter such as $1.
func endOfDollars(sql string) int {
	end := 1
	for end < len(sql) && isWord(sql[end]) {
		end++
	}
	isNumber := end > 1 && sql[1] >= '0' && sql[1] <= '9'
	if isNumber || end == len(sql) || sql[end] != '$' {
		return end
	}
	quote := sql[:end+1]
	inside := strings.Index(sql[end+1:], quote)
	if inside < 0 {
		return -1
	}
	return end + 1 + inside + len(quote)
}

// isWord says whether a byte can be inside of a name or number.
func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || (b|0x20) >= 'a' && (b|0x20) <= 'z' || b >= 0x80
}
