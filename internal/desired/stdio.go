package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1alpha1 "github.com/mcp-operator/mcp-operator/api/v1alpha1"
)

const (
	// bridgeVolume is the volume, and bridgePath the folder, that the bridge of a Stdio server is copied to. The API refuses
	// mounts there.
	bridgeVolume = "mcp-bridge"
	bridgePath   = "/mcp-bridge"

	// bridgeHealthPort is where the bridge answers /livez, /readyz and /status. The API refuses it as spec.port.
	bridgeHealthPort     = int32(8088)
	bridgeHealthPortName = "health"

	// bridgeContainer is the init container that copies it.
	bridgeContainer = "mcp-gateway"

	bridgeBinary = bridgePath + "/mcp-gateway"
)

// NeedsBridge says whether a server is run by the bridge, and so needs the gateway image.
func NeedsBridge(server *mcpv1alpha1.MCPServer) bool {
	return server.Spec.Transport == mcpv1alpha1.TransportStdio
}

// IsBridged says whether a pod runs its server by the bridge.
func IsBridged(pod *corev1.Pod) bool {
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name == bridgeContainer {
			return true
		}
	}
	return false
}

// GatewayRevision is a digest of everything that the pods of a Stdio server are asked to be, but for the gateway image: as long
// as it is the same, pods need not be replaced. A request for another image (AnnotationUpgradeGateway) changes it too.
func GatewayRevision(server *mcpv1alpha1.MCPServer, env Environment, configHash string) string {
	env.GatewayImage = ""
	server = &mcpv1alpha1.MCPServer{ObjectMeta: server.ObjectMeta, Spec: *server.Spec.DeepCopy()}
	return digestOf(podTemplate(server, env, configHash), server.Annotations[mcpv1alpha1.AnnotationUpgradeGateway])
}

// digestOf is a digest of a pod template, and of a request for another gateway image.
func digestOf(template corev1.PodTemplateSpec, request string) string {
	// As a map without what is empty: another release of the API's Go types, which writes an empty field more or less, must not
	// change the digest.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err == nil {
		content["request"] = request
		prune(content)
	}
	text, jsonErr := json.Marshal(content)
	if err = errors.Join(err, jsonErr); err != nil { // a struct of strings, numbers and maps of strings
		panic(fmt.Sprintf("encode a pod template: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// prune removes what is empty.
func prune(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case map[string]any:
			if prune(v); len(v) == 0 {
				delete(object, key)
			}
		case []any:
			for _, item := range v {
				if inner, isObject := item.(map[string]any); isObject {
					prune(inner)
				}
			}
			if len(v) == 0 {
				delete(object, key)
			}
		case nil:
			delete(object, key)
		case string:
			if v == "" {
				delete(object, key)
			}
		}
	}
}

// bridged makes the pod of a Stdio server: an init container copies the static bridge, and the bridge runs the command as its
// child, in the user's image, as the user's user, on the same read-only root.
func bridged(pod *corev1.PodSpec, server *mcpv1alpha1.MCPServer, env Environment) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: bridgeVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("64Mi"))}},
	})
	c := &pod.Containers[0]
	pod.InitContainers = []corev1.Container{{
		Name:         bridgeContainer,
		Image:        env.GatewayImage,
		Command:      []string{"/mcp-gateway", "install", "--to", bridgeBinary},
		VolumeMounts: []corev1.VolumeMount{{Name: bridgeVolume, MountPath: bridgePath}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
		SecurityContext: securityContext(true),
	}}
	c.Command = append(bridgeCommand(server, *pod.TerminationGracePeriodSeconds), c.Command...)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: bridgeVolume, MountPath: bridgePath, ReadOnly: true})
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: bridgeHealthPortName, ContainerPort: bridgeHealthPort, Protocol: corev1.ProtocolTCP})

	asked := mcpv1alpha1.Probes{}
	if server.Spec.Probes != nil {
		asked = *server.Spec.Probes
	}
	if asked.Liveness == nil {
		asked.Liveness = &mcpv1alpha1.Probe{}
	}
	c.LivenessProbe = healthProbe("/livez", probe(server, asked.Liveness, 10, 3))
	c.ReadinessProbe = healthProbe("/readyz", c.ReadinessProbe)
	c.StartupProbe = healthProbe("/readyz", c.StartupProbe)
}

// bridgeCommand is the bridge's part of the command line. The kubelet would replace $(NAME) in it: nothing that stands there may hold a '$'. The
// environment is the server's: nothing in it is meant for the bridge.
func bridgeCommand(server *mcpv1alpha1.MCPServer, graceSeconds int64) []string {
	sessions := strings.ToLower(string(server.Spec.Sessions))
	if sessions == "" {
		sessions = "auto"
	}
	return []string{
		bridgeBinary, "stdio",
		"--ignore-environment",
		fmt.Sprintf("--listen=:%d", Port(server)),
		fmt.Sprintf("--health-listen=:%d", bridgeHealthPort),
		"--path=" + Path(server),
		"--server-name=" + server.Name,
		"--sessions=" + sessions,
		"--call-timeout=1h", // as with other servers, who calls decides
		fmt.Sprintf("--termination-grace=%ds", graceSeconds),
		"--",
	}
}

// healthProbe turns a probe of the server into one of the bridge's health port, with the same timings.
func healthProbe(path string, p *corev1.Probe) *corev1.Probe {
	if p != nil {
		p.ProbeHandler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromInt32(bridgeHealthPort), Scheme: corev1.URISchemeHTTP,
		}}
	}
	return p
}
