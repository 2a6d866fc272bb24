package mcp

// clientInfo is how the operator names itself in a handshake.
func (p *prober) clientInfo() map[string]any {
	return map[string]any{"name": p.name, "version": p.version}
}

func (p *prober) userAgent() string { return p.name + "/" + p.version }

// hostHeader is the Host header that is sent.
func (p *prober) hostHeader() string {
	if p.host != "" {
		return p.host
	}
	return p.target.Host
}

func (p *prober) hostname() string { return p.target.Hostname() }

func (p *prober) port() string { return port(p.target) }

// path is the path for messages.
func (p *prober) path() string {
	if path := p.target.EscapedPath(); path != "" {
		return cut(path, 256)
	}
	return "/"
}
