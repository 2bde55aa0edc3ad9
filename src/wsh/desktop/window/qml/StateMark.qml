import QtQuick

// A state has a colour, a shape and a word.
Item {
    id: mark
    property string state_: "running"
    property int exitCode: -1
    readonly property string word: ({ running: "running", waiting: "waiting for input", hidden: "hidden prompt", exited: "exited 0", failed: "exited " + exitCode })[state_] || state_
    readonly property color tint: look.c[({ running: "running", waiting: "waiting", hidden: "hidden", exited: "ended", failed: "failed" })[state_] || "ended"]
    implicitWidth: 20
    implicitHeight: 14
    Canvas {
        id: shape
        visible: mark.state_ !== "failed"
        anchors.centerIn: parent
        width: 12
        height: 12
        onPaint: {
            const g = getContext("2d")
            g.reset()
            g.fillStyle = mark.tint
            g.strokeStyle = mark.tint
            g.lineWidth = 1.4
            if (mark.state_ === "running") {
                g.beginPath(); g.arc(6, 6, 4, 0, 7); g.fill()
            } else if (mark.state_ === "waiting") {
                g.beginPath(); g.arc(6, 6, 3.6, 0, 7); g.stroke()
                g.beginPath(); g.arc(6, 6, 3.6, -Math.PI / 2, Math.PI / 2); g.fill()
            } else if (mark.state_ === "hidden") {
                g.fillRect(2, 5.5, 8, 5.5)
                g.beginPath(); g.arc(6, 5, 2.4, Math.PI, 0); g.stroke()
            } else {
                g.fillRect(2, 2, 8, 8)
            }
        }
        Connections { target: mark; function onTintChanged() { shape.requestPaint() } function onState_Changed() { shape.requestPaint() } }
    }
    Rectangle {
        visible: mark.state_ === "failed"
        anchors.centerIn: parent
        width: Math.max(14, number.implicitWidth + 6)
        height: 14
        radius: 3
        color: mark.tint
        Text {
            id: number
            anchors.centerIn: parent
            text: mark.exitCode
            color: look.c.raised
            font.pixelSize: 10
            font.bold: true
        }
    }
}
