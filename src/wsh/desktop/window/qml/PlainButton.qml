import QtQuick
import QtQuick.Controls.Basic

AbstractButton {
    id: button
    property bool primary: false
    property bool danger: false
    property bool on: false
    property string tip: ""
    property bool holdable: false
    signal held()
    implicitHeight: 28
    implicitWidth: label.implicitWidth + 20
    focusPolicy: Qt.StrongFocus
    Accessible.name: text
    Accessible.description: tip
    ToolTip.visible: hovered && tip !== ""
    ToolTip.text: tip
    ToolTip.delay: 600
    // What destroys wants to be held; the fill says how long still.
    Timer { id: holding; interval: 900; onTriggered: button.held() }
    onPressed: if (holdable) holding.start()
    onReleased: holding.stop()
    onCanceled: holding.stop()
    onHoldableChanged: holding.stop()
    Keys.onReturnPressed: clicked()
    Keys.onEnterPressed: clicked()
    background: Rectangle {
        radius: 6
        color: button.primary ? look.c.accent : button.on ? look.c.selected : button.hovered ? look.c.hover : look.c.raised
        border.width: button.visualFocus ? 2 : 1
        border.color: button.visualFocus ? look.c.accent : button.danger ? look.c.danger : look.c.edge
        opacity: button.enabled ? 1 : 0.5
        Rectangle {
            visible: holding.running
            radius: 6
            height: parent.height
            width: holding.running ? parent.width : 0
            color: look.c.danger
            opacity: 0.35
            Behavior on width { enabled: holding.running; NumberAnimation { duration: holding.interval } }
        }
    }
    contentItem: Text {
        id: label
        text: button.text
        color: button.primary ? look.c.on_accent : button.danger ? look.c.danger : look.c.text
        font.bold: button.primary
        horizontalAlignment: Text.AlignHCenter
        verticalAlignment: Text.AlignVCenter
    }
}
