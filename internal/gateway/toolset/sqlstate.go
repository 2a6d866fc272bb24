package toolset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	queryCanceled    = "57014"
	readOnlyViolated = "25006"
)

// sqlState is the code of an error that the server sent (PostgreSQL, appendix A).
func sqlState(err error) (string, bool) {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failure.Code, true
	}
	return "", false
}

// isOutage says whether any other statement would have failed too.
func isOutage(state string) bool {
	for _, class := range []string{"08", "28", "53", "57", "58", "XX"} {
		if strings.HasPrefix(state, class) {
			return true
		}
	}
	return false
}

// isStatement says whether the statement is at fault, whatever its arguments.
func isStatement(state string) bool { return strings.HasPrefix(state, "42") }

// meanings are those of single codes, and of classes, whose last three digits are zeros.
var meanings = map[string]string{
	"22000": "a value does not fit", "22001": "a text is too long", "22003": "a number is out of range", "22007": "a date or time is written wrongly",
	"22008": "a date or time is out of range", "22012": "division by zero", "22023": "a parameter has a wrong value",
	"22P02": "a value is written wrongly for its type", "22P05": "a character cannot be stored",
	"23000": "a constraint is violated", "23502": "a value is missing where there must be one",
	"23503": "what is referred to does not exist, or is still referred to",
	"23505": "it exists already", "23514": "a check fails",
	"25000": "the transaction is in a wrong state", readOnlyViolated: "it would change something, which this tool may not",
	"28000": "the login is refused", "28P01": "the password is wrong",
	"3D000": "the database does not exist", "3F000": "the schema does not exist",
	"40000": "the transaction was rolled back: try again", "40001": "it collided with another transaction: try again",
	"40P01": "it was in a deadlock with another transaction: try again",
	"42000": "the statement is wrong", "42501": "the role lacks a privilege", "42601": "syntax error", "42703": "a column does not exist",
	"42702": "a column name is ambiguous", "42704": "an object does not exist", "42804": "types do not match", "42846": "a type cannot be cast",
	"42883": "a function or operator does not exist for these types", "42P01": "a table does not exist", "42P02": "a parameter does not exist",
	"42P08": "the type of a parameter is ambiguous", "42P18": "the type of a parameter cannot be derived: give its type",
	"53000": "the server lacks resources", "53300": "the server has too many connections", "54000": "a limit of the server is exceeded",
	"55000": "an object is in a wrong state", "55P03": "a lock is not available",
	"57000": "the server's operator intervened", queryCanceled: "it took too long", "57P01": "the server shuts down", "57P03": "the server is starting",
	"58000": "the server's system failed", "P0000": "a function raised an error", "P0001": "a function raised an error",
	"XX000": "the server has an internal error",
}

// explain says what a server's error means in words of our own: the server's may hold values of rows and arguments. A constraint's
// name is told, since it says what to mend.
func explain(err error) string {
	failure, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return "the database cannot be reached"
	}
	code := failure.Code
	if len(code) != 5 || strings.Trim(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "an error without a valid SQLSTATE"
	}
	meaning := meanings[code]
	if meaning == "" {
		meaning = meanings[code[:2]+"000"]
	}
	if meaning == "" {
		meaning = "an error of class " + code[:2]
	}
	out := fmt.Sprintf("SQLSTATE %s: %s", code, meaning)
	if failure.Position > 0 {
		out += fmt.Sprintf(", at character %d of the statement", failure.Position)
	}
	if name := failure.ConstraintName; strings.HasPrefix(code, "23") && name != "" && len(name) <= 63 && !strings.ContainsFunc(name, isControl) {
		out += fmt.Sprintf(" (constraint %q)", name)
	}
	return out
}
