package v1alpha1

// Condition types of an MCPServer, and of the other kinds as far as they say so. Unknown means in progress; False means that somebody has
// to act.
const (
	// ConditionAccepted says whether the specification is usable, and every ConfigMap, Secret and key in it that pods read or TLS trusts
	// exists. All kinds have it.
	// Reasons: Valid (True), Invalid (False), Unknown (Unknown: something could not be read, and is tried
	// again); of an MCPTool also SecretNotAllowed (False).
	ConditionAccepted = "Accepted"

	// ConditionApplied says whether the child objects are as the specification asks. All kinds have it, an MCPTool of type openapi alone.
	// Reasons: Applied (True); OwnershipConflict, Rejected, GatewayImageMissing (False); ApplyFailed (False, or Unknown while a
	// child is being deleted); FieldConflict (Unknown).
	ConditionApplied = "Applied"

	// ConditionAvailable says whether at least one pod is ready, of an MCPAgent one of its gateway.
	// Reasons: Available (True); Initializing (Unknown); ScaledToZero, ImagePullFailed, CrashLooping, ConfigError,
	// OOMKilled, NotReady, Unschedulable, MountFailed, PodRejected, NonNumericUser (False).
	ConditionAvailable = "Available"

	// ConditionVerified says whether a ready pod, and once a generation the Service, answered MCP.
	// Reasons: Verified, AuthRequired (True); Probing, NoReadyPod (Unknown); the reasons of the prober (False).
	// Of an MCPTool it says whether a gateway that holds the credential serves the tool.
	// Reasons: Verified (True); NoAgent, Pending, Unknown (Unknown); CheckFailed (False).
	ConditionVerified = "Verified"

	// ConditionProgressing says whether a rollout runs.
	// Reasons: RollingOut (True); Settled, ProgressDeadlineExceeded (False); Paused (Unknown).
	ConditionProgressing = "Progressing"

	// ConditionReady says whether clients can use the server now: a ready pod answered MCP within the last minute or so.
	// It is derived from the other conditions and never set by itself. During a rollout in which old pods serve, it
	// stays True with the observedGeneration that was verified.
	// Reasons: Available (True); Initializing (Unknown); ConfigurationInvalid, DeploymentUnavailable, ServiceUnavailable,
	// NetworkPolicyUnavailable, ScaledToZero, MCPEndpointUnavailable (False).
	// Of an MCPAgent it says the same of its endpoint, with the same reasons. Of an MCPTool it says whether the tool can be served.
	// Reasons: Available (True); Initializing (Unknown); ConfigurationInvalid, EndpointUnreachable, CheckFailed, those of Applied (False).
	ConditionReady = "Ready"

	// ConditionPaused is present while the annotation mcp.operator/paused is set.
	// Reasons: Paused (True: reconciling is stopped); Invalid (False: its value cannot be read, and nothing is stopped).
	ConditionPaused = "Paused"
)

// Reasons of Accepted.
const (
	// ReasonValid means that the specification is usable.
	ReasonValid = "Valid"
	// ReasonInvalid means that the specification, or something it refers to, has to be corrected by its author.
	ReasonInvalid = "Invalid"
	// ReasonUnknown means that the specification has not been judged yet.
	ReasonUnknown = "Unknown"
)

// Reasons of Ready.
const (
	// ReasonAvailable means that a ready pod answers MCP, of an MCPTool that it can be served.
	ReasonAvailable = "Available"
	// ReasonConfigurationInvalid means that Accepted is False.
	ReasonConfigurationInvalid = "ConfigurationInvalid"
	// ReasonDeploymentUnavailable means that the Deployment could not be applied or has no ready pod.
	ReasonDeploymentUnavailable = "DeploymentUnavailable"
	// ReasonServiceUnavailable means that the Service could not be applied.
	ReasonServiceUnavailable = "ServiceUnavailable"
	// ReasonNetworkPolicyUnavailable means that the NetworkPolicy could not be applied.
	ReasonNetworkPolicyUnavailable = "NetworkPolicyUnavailable"
	// ReasonScaledToZero means that zero replicas are asked for.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonInitializing means that pods start, or that the first MCP handshake is under way.
	ReasonInitializing = "Initializing"
	// ReasonMCPEndpointUnavailable means that pods are ready and do not answer MCP.
	ReasonMCPEndpointUnavailable = "MCPEndpointUnavailable"
)

// Reasons of Applied.
const (
	// ReasonApplied means that all children are as asked.
	ReasonApplied = "Applied"
	// ReasonOwnershipConflict means that an object of a child's name belongs to somebody else; it is not touched.
	ReasonOwnershipConflict = "OwnershipConflict"
	// ReasonFieldConflict means that somebody else changes a child again right after it was corrected; it is corrected at
	// most every ten seconds.
	ReasonFieldConflict = "FieldConflict"
	// ReasonRejected means that the API server, a quota or a policy refused a child.
	ReasonRejected = "Rejected"
	// ReasonGatewayImageMissing means that the server needs a bridge and the operator was not told the bridge's image.
	ReasonGatewayImageMissing = "GatewayImageMissing"
	// ReasonApplyFailed means that writing a child failed for another cause; it is tried again.
	ReasonApplyFailed = "ApplyFailed"
)

// Reasons of Available when no pod is ready; each is the diagnosis of a pod.
const (
	// ReasonImagePullFailed means that the image cannot be pulled.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonCrashLooping means that the container exits again and again.
	ReasonCrashLooping = "CrashLooping"
	// ReasonConfigError means that the container cannot be created from its configuration, for example a missing key.
	ReasonConfigError = "ConfigError"
	// ReasonNonNumericUser means that the image's user cannot be proven not to be root.
	ReasonNonNumericUser = "NonNumericUser"
	// ReasonOOMKilled means that the container was killed at its memory limit.
	ReasonOOMKilled = "OOMKilled"
	// ReasonNotReady means that the container runs and its probes fail.
	ReasonNotReady = "NotReady"
	// ReasonUnschedulable means that no node takes the pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonMountFailed means that a volume cannot be mounted.
	ReasonMountFailed = "MountFailed"
	// ReasonPodRejected means that pods cannot be created, for example because of a quota or Pod Security.
	ReasonPodRejected = "PodRejected"
)

// Reasons of Verified, beside those of the prober.
const (
	// ReasonVerified means that the handshake and the listing of tools succeeded.
	ReasonVerified = "Verified"
	// ReasonAuthRequired means that the server answered 401 with a Bearer challenge: it is up and asks callers for a token.
	ReasonAuthRequired = "AuthRequired"
	// ReasonProbing means that the first handshake is under way.
	ReasonProbing = "Probing"
	// ReasonNoReadyPod means that there is no pod to ask.
	ReasonNoReadyPod = "NoReadyPod"
	// ReasonServiceUnreachable means that a pod answers MCP and the Service in front of it does not.
	ReasonServiceUnreachable = "ServiceUnreachable"
)

// Reasons of Progressing and Paused.
const (
	// ReasonRollingOut means that pods are being replaced or added.
	ReasonRollingOut = "RollingOut"
	// ReasonSettled means that all pods are of the current specification.
	ReasonSettled = "Settled"
	// ReasonProgressDeadlineExceeded means that a rollout made no progress for too long.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonPaused means that the annotation mcp.operator/paused is set, or that somebody paused the Deployment.
	ReasonPaused = "Paused"
)

// Condition types of an MCPTool, beside Accepted, Applied (of type openapi), Verified and Ready.
const (
	// ConditionReachable says whether the endpoint can be connected to from where the operator runs.
	// Reasons: Reachable (True); Connecting (Unknown); AddressDenied, DNSFailed, ConnectFailed, TLSFailed (False).
	ConditionReachable = "Reachable"
)

// Condition types of an MCPAgent, beside Accepted, Applied, Available, Progressing and Ready.
const (
	// ConditionRouted says whether everything that is granted is served, or held back as asked. False names what is not; the rest is served.
	// Reasons: Routed (True); Pending (Unknown); ToolsUnavailable, TableRefused (False).
	ConditionRouted = "Routed"
)

// Reasons of Reachable.
const (
	// ReasonReachable means that a connection was made, and TLS was agreed on where the endpoint has it.
	ReasonReachable = "Reachable"
	// ReasonConnecting means that the first attempt is under way.
	ReasonConnecting = "Connecting"
	// ReasonAddressDenied means that the endpoint is at an address that may not be dialled.
	ReasonAddressDenied = "AddressDenied"
	// ReasonDNSFailed means that the endpoint's name has no address.
	ReasonDNSFailed = "DNSFailed"
	// ReasonConnectFailed means that nobody accepts connections there.
	ReasonConnectFailed = "ConnectFailed"
	// ReasonTLSFailed means that the endpoint's certificate is not trusted, or that it does not speak TLS.
	ReasonTLSFailed = "TLSFailed"
)

// Reasons of an MCPTool's Verified and Ready.
const (
	// ReasonSecretNotAllowed means, of Accepted, that the Secret must not be sent to the endpoint's host (AnnotationAllowedHosts).
	ReasonSecretNotAllowed = "SecretNotAllowed"
	// ReasonNoAgent means that no agent is granted the tool: nobody has tried it yet.
	ReasonNoAgent = "NoAgent"
	// ReasonCheckFailed means that a gateway that holds the credential could not use the tool.
	ReasonCheckFailed = "CheckFailed"
	// ReasonEndpointUnreachable means that Reachable is False.
	ReasonEndpointUnreachable = "EndpointUnreachable"
)

// Reasons of Routed.
const (
	// ReasonRouted means that all that is granted is served.
	ReasonRouted = "Routed"
	// ReasonPending means that no gateway has told yet. Verified of an MCPTool has it too.
	ReasonPending = "Pending"
	// ReasonToolsUnavailable means that something that is granted is not served; status.effectiveTools says what and why.
	ReasonToolsUnavailable = "ToolsUnavailable"
	// ReasonTableRefused means that a gateway refused the newest routing table and serves by the one before.
	ReasonTableRefused = "TableRefused"
)

// AnnotationAllowedHosts on a Secret lists, separated by commas, the hosts ("api.example.com", "*.example.com", "db.team.svc:5432") that it
// may be sent to by MCPTools. Without it, the tools that name it decide.
const AnnotationAllowedHosts = "mcp.operator/allowed-hosts"

// AnnotationPaused stops reconciling of the object that carries it with a true value ("true", "True", "1"). What exists goes on
// running and is still observed.
const AnnotationPaused = "mcp.operator/paused"

// AnnotationUpgradeGateway asks for the gateway image that the operator has now: each new value does so once. The pods are
// replaced if it is another one.
const AnnotationUpgradeGateway = "mcp.operator/upgrade-gateway"
