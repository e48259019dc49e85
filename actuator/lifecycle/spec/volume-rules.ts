import { done, each, refused } from "./rule.ts";

const NEEDS_API = refused("its content comes from the API server: use emptyDir, or a hostPath with the files");
const NETWORK = refused("this daemon mounts emptyDir and hostPath only: mount it on the node, and use a hostPath");
const CLAIM = refused("claims need the API server: use a hostPath, or an emptyDir where the data may go with the pod");

export const VOLUME_RULES = {
  Volume: {
    ...each("name hostPath emptyDir", done),
    ...each("configMap secret projected", NEEDS_API),
    ...each("persistentVolumeClaim ephemeral", CLAIM),
    downwardAPI: refused("files about the pod are not written by this daemon: use `env` with `fieldRef`"),
    image: refused("image volumes are not mounted by this daemon: copy from the image in an init container"),
    gitRepo: refused("no longer part of Kubernetes: clone into an emptyDir in an init container"),
    ...each("gcePersistentDisk awsElasticBlockStore nfs iscsi glusterfs rbd flexVolume cinder cephfs", NETWORK),
    ...each("flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk", NETWORK),
    ...each("portworxVolume scaleIO storageos csi", NETWORK),
  },
  EmptyDirVolumeSource: each("medium sizeLimit", done),
  HostPathVolumeSource: each("path type", done),
} as const;
