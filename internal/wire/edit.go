package wire

import "encoding/json"

// Edit is one change With makes. A value is a valid JSON value; one that is empty stands for null.
type Edit struct {
	place  place
	remove bool // only in a _meta
	key    string
	value  json.RawMessage
}

// place is the part of a message that an edit is about.
type place int

const (
	nowhere place = iota
	inIDValue
	inParamsObject
	inParamsMeta
	inResultObject
	inResultMeta
)

// meta returns the place of the _meta within a place.
func (p place) meta() place {
	switch p {
	case inParamsObject:
		return inParamsMeta
	case inResultObject:
		return inResultMeta
	default:
		return nowhere
	}
}

// isIn reports whether an edit is about a place or its _meta.
func (e *Edit) isIn(p place) bool { return e.place == p || e.place == p.meta() }

// SetID sets the id of a request or response. It makes no request of a notification.
func SetID(id json.RawMessage) Edit { return Edit{place: inIDValue, value: id} }

// SetParam sets a member of the params of a request or notification, which get params if they have none.
func SetParam(key string, value json.RawMessage) Edit {
	return Edit{place: inParamsObject, key: key, value: value}
}

// SetMeta sets a member of the params._meta of a request or notification, which get both if need be.
func SetMeta(key string, value json.RawMessage) Edit {
	return Edit{place: inParamsMeta, key: key, value: value}
}

// RemoveMeta removes a member of params._meta.
func RemoveMeta(key string) Edit { return Edit{place: inParamsMeta, key: key, remove: true} }

// SetResult sets a member of the result of a response, which becomes an object if it is none. An error stays as it is.
func SetResult(key string, value json.RawMessage) Edit {
	return Edit{place: inResultObject, key: key, value: value}
}

// SetResultMeta sets a member of the result's _meta.
func SetResultMeta(key string, value json.RawMessage) Edit {
	return Edit{place: inResultMeta, key: key, value: value}
}
