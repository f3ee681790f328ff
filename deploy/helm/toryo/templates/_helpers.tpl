{{/* The name of the server and what belongs to it: that of the release. */}}
{{- define "toryo.name" -}}
{{- if contains "toryo" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-toryo" (.Release.Name | trunc 44 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "toryo.agent" -}}
{{ include "toryo.name" . }}-agent
{{- end }}

{{- define "toryo.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "toryo.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/name: toryo
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* What every pod of the chart has. The user is that of the image. */}}
{{- define "toryo.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.podUser | int64 }}
runAsGroup: {{ .Values.podUser | int64 }}
fsGroup: {{ .Values.podUser | int64 }}
{{- end }}

{{- define "toryo.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "toryo.serverConfig" -}}
{{- $database := dict "driver" .Values.server.database.driver }}
{{- if eq .Values.server.database.driver "postgres" }}
{{- $database = set $database "url_file" (printf "/secrets/database/%s" .Values.server.database.key) }}
{{- end }}
{{- $server := dict "addr" "0.0.0.0:8750" }}
{{- if .Values.ingress.enabled }}
{{- $server = set $server "public_url" (printf "%s://%s" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) .Values.ingress.host) }}
{{- end }}
{{- $chart := dict "data_dir" "/data" "server" $server "database" $database "log" (dict "format" "json") }}
{{- mergeOverwrite $chart (deepCopy .Values.server.config) | toYaml }}
{{- end }}

{{- define "toryo.egressConfig" -}}
sandbox:
  network:
    hosts: {{ .Values.sandboxes.egress.hosts | toJson }}
log:
  format: json
{{- end }}

{{- define "toryo.agentConfig" -}}
{{- $sandbox := dict "kind" .Values.sandboxes.kind }}
{{- if eq .Values.sandboxes.kind "kubernetes" }}
{{- $cluster := dict "namespace" .Values.sandboxes.namespace "guest_image" (include "toryo.image" .) "pull_policy" .Values.image.pullPolicy }}
{{- if .Values.sandboxes.egress.enabled }}{{- $cluster = set $cluster "egress_service" "toryo-egress" }}{{- end }}
{{- with .Values.image.pullSecrets }}{{- $cluster = set $cluster "pull_secrets" . }}{{- end }}
{{- with .Values.sandboxes.snapshotClaim }}{{- $cluster = set $cluster "snapshot_claim" . }}{{- end }}
{{- with .Values.sandboxes.warm }}{{- $cluster = set $cluster "warm" (int .) }}{{- end }}
{{- $sandbox = set $sandbox "kubernetes" $cluster }}
{{- end }}
{{- $chart := dict "data_dir" "/data" "agent" (dict "server" (printf "http://%s:%v" (include "toryo.name" .) .Values.service.port)) "sandbox" $sandbox "log" (dict "format" "json") }}
{{- mergeOverwrite $chart (deepCopy .Values.agents.config) | toYaml }}
{{- end }}
