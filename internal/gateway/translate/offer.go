package translate

import (
	"encoding/json"

	"github.com/mcp-operator/mcp-operator/internal/wire"
)

// Offer is what a server says of itself, whatever the version it says it in. Clients are shown it as the result of initialize
// or of server/discover.
type Offer struct {
	// Capabilities is an object, or nil if it is not known yet what the server offers.
	Capabilities json.RawMessage
	// Info is the server's name and version, an object; nil if it does not say.
	Info json.RawMessage
	// Instructions are for the model that uses the server.
	Instructions string

	meta  json.RawMessage // _meta without Info, or nil
	other []byte          // members no version gives a meaning to, as the text of an object that is still open
}

// ReadInitialize reads the result of initialize.
func ReadInitialize(result json.RawMessage) Offer {
	o := read(result)
	o.Info = objectOrNil(wire.Field(result, "serverInfo"))
	return o
}

// ReadDiscover reads the result of server/discover.
func ReadDiscover(result json.RawMessage) Offer {
	o := read(result)
	o.Info = objectOrNil(wire.Field(wire.Field(result, "_meta"), wire.MetaServerInfo))
	return o
}

func read(result json.RawMessage) Offer {
	o := Offer{Capabilities: json.RawMessage(`{}`), other: []byte{'{'}}
	for key, value := range wire.Fields(result) {
		switch key {
		case "capabilities":
			o.Capabilities = object(value, func(_ string, value json.RawMessage) json.RawMessage { return value })
		case "instructions":
			o.Instructions, _ = wire.String(value)
		case "_meta":
			o.meta = withoutServerInfo(value)
		case "serverInfo", "protocolVersion", "supportedVersions", "resultType", "ttlMs", "cacheScope":
		default:
			o.other = appendMember(o.other, key, value)
		}
	}
	return o
}

func objectOrNil(raw json.RawMessage) json.RawMessage {
	if !wire.IsObject(raw) {
		return nil
	}
	return raw
}

func withoutServerInfo(meta json.RawMessage) json.RawMessage {
	rest := object(meta, func(key string, value json.RawMessage) json.RawMessage {
		if key == wire.MetaServerInfo {
			return nil
		}
		return value
	})
	if len(rest) == len(`{}`) {
		return nil
	}
	return rest
}

// Initialize is the offer as the result of initialize for a client that asked for a version; see [Negotiate].
func (o Offer) Initialize(clientVersion string) json.RawMessage {
	out := appendMember([]byte{'{'}, "protocolVersion", wire.Quote(Negotiate(clientVersion)))
	out = appendMember(out, "capabilities", o.capabilities())
	info := o.Info
	if info == nil {
		info = json.RawMessage(`{"name":"unknown","version":"unknown"}`) // required there, recommended in discover only
	}
	out = appendMember(out, "serverInfo", info)
	return append(o.rest(out, o.meta), '}')
}

// Discover is the offer as the result of server/discover. A client must not share it: what it is shown may depend on who it is.
func (o Offer) Discover() json.RawMessage {
	out := []byte(`{"resultType":"complete","supportedVersions":[`)
	for i, version := range wire.Versions() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, wire.Quote(version)...)
	}
	out = append(out, `],"ttlMs":0,"cacheScope":"private"`...)
	out = appendMember(out, "capabilities", o.capabilities())
	meta := o.meta
	if o.Info != nil {
		open := []byte{'{'}
		for key, value := range wire.Fields(o.meta) {
			open = appendMember(open, key, value)
		}
		meta = append(appendMember(open, wire.MetaServerInfo, o.Info), '}')
	}
	return append(o.rest(out, meta), '}')
}

func (o Offer) capabilities() json.RawMessage {
	if o.Capabilities == nil {
		return json.RawMessage(`{}`)
	}
	return o.Capabilities
}

// rest appends the members that both results have.
func (o Offer) rest(out []byte, meta json.RawMessage) []byte {
	if o.Instructions != "" {
		out = appendMember(out, "instructions", wire.Quote(o.Instructions))
	}
	if meta != nil {
		out = appendMember(out, "_meta", meta)
	}
	if len(o.other) > len(`{`) {
		out = append(append(out, ','), o.other[1:]...)
	}
	return out
}

// Carries says what a gateway carries across versions besides requests and their results. What it does not carry is not offered.
type Carries struct {
	// ListChanged is that changes of lists reach clients, by the GET stream or by subscriptions/listen.
	ListChanged bool
	// Subscribe is that updates of single resources do.
	Subscribe bool
	// Logging is that log messages of a call do, of the level asked for by logging/setLevel or _meta.
	Logging bool
}

// Across returns the offer that a client of the other era is shown: without tasks and experiments, which differ, without
// extensions that need more than requests and results, and without what is not known here.
func (o Offer) Across(c Carries) Offer {
	if o.Capabilities == nil {
		return o
	}
	o.Capabilities = object(o.Capabilities, func(key string, value json.RawMessage) json.RawMessage {
		switch key {
		case "tools", "prompts", "resources":
			return c.list(value)
		case "completions":
			return value
		case "logging":
			if c.Logging {
				return value
			}
		case "extensions":
			return carriedExtensions(value)
		}
		return nil
	})
	return o
}

// list returns the capability of a list without what is not carried.
func (c Carries) list(capability json.RawMessage) json.RawMessage {
	return object(capability, func(key string, value json.RawMessage) json.RawMessage {
		if key == "listChanged" && !c.ListChanged || key == "subscribe" && !c.Subscribe {
			return nil
		}
		return value
	})
}
